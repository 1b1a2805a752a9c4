import { beforeAll, describe, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { selectBuild, setDigest } from '../../../src/features/builds/store.ts';
import { directoryOfBuild, sendArchive } from '../../support/builds.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { sha256 } from '../../support/objects/digest.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { packTar } from '../../support/tar.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

async function rowOf(build_id: string) {
  const row = await selectBuild(muster.database.queries, game, build_id);
  if (!row) throw new Error('the build exists');
  return row;
}

/** Starts a server of a build whose files are no longer on the machine, and returns how it ended. */
async function runAgain(build_id: string) {
  rmSync(directoryOfBuild(muster, build_id), { recursive: true });
  const servers = serversOf(muster, game);
  const { body } = await servers.create(await servers.bodyOf(build_id));
  const end = await waitForEndEvent(muster, body.server.id);
  if (end.event !== 'server_ended') throw new Error('the log has the end of the server');
  return end;
}

const archive = async (text: string) =>
  new Uint8Array(await packTar([{ name: 'server', content: `#!/bin/sh\necho ${text}\n`, mode: 0o755 }]));

describe('digests: a complete build keeps that of its file', () => {
  test('of an archive, with any bytes behind its end', async () => {
    const packed = gzipSync(await archive('one'));
    const padded = new Uint8Array(Buffer.concat([packed, Buffer.alloc(200_000)]));
    for (const content of [await archive('one'), new Uint8Array(packed), padded]) {
      const { build_id, complete } = await sendArchive(muster, game, content);
      expect((await rowOf(build_id)).sha256).toBeNull();
      expect(outcomeOf(await complete())).toBe('200');
      expect((await rowOf(build_id)).sha256).toBe(sha256(content));
    }
  });

  test('of a script', async () => {
    const source = 'console.log(1);';
    expect((await rowOf(await uploadScript(muster.api, game, source))).sha256).toBe(sha256(source));
  });

  test('of the file that was sent last', async () => {
    const last = await archive('two');
    const { build_id, send, complete } = await sendArchive(muster, game, new Uint8Array(last.length).fill(1));
    expect(outcomeOf(await complete())).toBe('400 BUILDS_BUILD_INVALID');
    expect((await rowOf(build_id)).sha256).toBeNull();
    await send(last);
    expect(outcomeOf(await complete())).toBe('200');
    expect((await rowOf(build_id)).sha256).toBe(sha256(last));
  });
});

describe('digests: a machine that unpacks a complete build', () => {
  test('records the digest if the build has none, as one of an earlier version', async () => {
    const content = await archive('three');
    const { build_id, complete } = await sendArchive(muster, game, content);
    expect(outcomeOf(await complete())).toBe('200');
    await muster.database.queries.execute(`update builds set sha256 = null where build_id = '${build_id}'`);
    expect(await runAgain(build_id)).toMatchObject({ exit_code: 0, failure: null });
    expect((await rowOf(build_id)).sha256).toBe(sha256(content));
  });

  test('refuses a stored file that is not the one that was uploaded', async () => {
    const { build_id, complete } = await sendArchive(muster, game, await archive('four'));
    expect(outcomeOf(await complete())).toBe('200');
    await setDigest(muster.database.queries, build_id, sha256('another file'));
    const { failure } = await runAgain(build_id);
    expect(failure).toBe(
      'The build is invalid: its stored file differs from the one that was uploaded; ask the operator to restore the storage.',
    );
  });
});
