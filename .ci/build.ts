// Makes dist/muster, the executable for this machine.
import { compile, HERE, makeCarried, TARGETS } from './compile.ts';
import { versionOf } from './version.ts';

const target = TARGETS.find(({ name }) => name === HERE);
if (!target) throw new Error(`There is no target ${HERE}: ${TARGETS.map((one) => one.name).join(', ')}.`);
if (target.hosts) await makeCarried();
await compile(target, { version: await versionOf('.'), outfile: 'dist/muster' });
