import { describe, test } from 'bun:test';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { expectDocumented } from '../support/isolation/documented.ts';
import { LEVELS, reasonWithoutLevel } from '../support/isolation/levels.ts';
import { probe } from '../support/isolation/probing.ts';

/** The levels that the short run tries. */
const MOST_USED = ['root', 'user'];
/** Those of engines are in the only file that starts engines: tests/features/servers/engine.test.ts. */
const TRIED = LEVELS.filter(
  ({ name, containers }) => MOST_USED.includes(name) || (IS_FULL_LENGTH && (!containers || containers === 'runc')),
);

describe('a hostile game server can do what docs/isolation-attempts.md says, and no more:', () => {
  for (const level of TRIED) {
    test.skipIf(reasonWithoutLevel(level) !== undefined)(
      level.name,
      // The limits of the disk are those of processes, which have a test of their own.
      async () => await expectDocumented(level.name, await probe(level, { with_disk: level.containers !== undefined })),
      600_000,
    );
  }
});
