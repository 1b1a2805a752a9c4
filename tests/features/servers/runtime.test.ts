import { describeRuntime } from '../../support/runtime-suite.ts';
import { RUNTIMES } from '../../support/runtimes.ts';

for (const kind of RUNTIMES) describeRuntime(kind);
