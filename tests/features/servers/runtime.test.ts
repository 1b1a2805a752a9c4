import { describeRuntime } from '../../support/runtimes/runtime-suite.ts';
import { RUNTIMES } from '../../support/runtimes/runtimes.ts';

for (const kind of RUNTIMES) describeRuntime(kind);
