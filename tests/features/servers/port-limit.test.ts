import { beforeAll, describe, expect, test } from 'bun:test';
import { readLandlockAbi, restrictsPorts } from '../../../src/platform/containment/landlock.ts';
import { makeGame } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';

/** Listens at its own port, which the first argument has, and then by an unbound socket too, if there is a second one. */
const LISTEN = `
  use IO::Socket::INET;
  my $own = IO::Socket::INET->new(Listen => 1, LocalPort => $ARGV[0]) or die;
  socket(my $other, AF_INET, SOCK_STREAM, 0);
  if (@ARGV > 1) { sleep 1; listen($other, 1) or die; }
  $| = 1;
  print +(sockaddr_in(getsockname($other)))[0], "\\n";
  sleep 600;`;
const scriptOf = (more = '') => `exec perl -e '${LISTEN}' $PORT_game ${more}`;

describe.skipIf(!restrictsPorts(readLandlockAbi()))('a server that listens on a TCP port of the kernel', () => {
  const muster = shareService();
  let servers: ReturnType<typeof serversOf>;
  beforeAll(async () => {
    servers = serversOf(muster, await makeGame(muster.api, muster.administrator_token));
  });
  const network = { ports: { game: { protocol: 'tcp', routing: { host: {} } } } };

  test('is ended with the reason, and one that keeps to its own port goes on', async () => {
    const good = await servers.run(scriptOf(), { network });
    await servers.waitForLines(good, 1);
    const bad = await servers.run(scriptOf('more'), { network });
    const { failure = '' } = await waitForEndEvent(muster, bad);
    const [port] = await servers.linesOf(bad);
    expect(failure).toBe(
      `it listened on TCP port ${port}, which is not one of its ports: listen only on the ports in PORT_<label>`,
    );
    expect(await servers.linesOf(bad, 'std_err')).toEqual([`[muster] ${failure}`]);
    expect(muster.events).toContainEqual(
      expect.objectContaining({ event: 'server_took_port', server_id: bad, port: Number(port) }),
    );
    expect((await servers.get(good)).destroyed_at).toBeUndefined();
  }, 300_000);
});
