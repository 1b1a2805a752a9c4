import { expect, test } from 'bun:test';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deploy } from '../../support/game.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN, WEB_SERVER } from '../../support/gateway.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { fingerprintAt, makeCertificate } from '../../support/network/tls.ts';
import { openTestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const SHAPE = { source: WEB_SERVER, ports: { web: { port: 80, protocol: 'https', presence: 'gateway' } } };

/** Replaces a file as programs do: at once. */
async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

test('gateway: renewals of the certificate and deploys cut no WebSocket', async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'muster-long-sockets-'));
  opened.defer(() => rm(folder, { recursive: true }));
  const files = { MUSTER_TLS_CERTIFICATE: join(folder, 'games.crt'), MUSTER_TLS_KEY: join(folder, 'games.key') };
  const issue = async () => {
    const { certificate, key } = await makeCertificate([`*.${SERVERS_DOMAIN}`]);
    await replace(files.MUSTER_TLS_KEY, key);
    await replace(files.MUSTER_TLS_CERTIFICATE, certificate);
    return certificate;
  };
  const first_certificate = await issue();
  const https_port = findFreePort();
  const settings = { ...files, MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN, MUSTER_HTTPS_PORT: String(https_port) };
  const muster = opened.use(await openTestService(settings));
  const game = await makeControlledGame(muster, SHAPE);

  /** Opens the WebSocket of a new player, and returns the function that sends a text and waits for its echo. */
  async function enter(ca: string) {
    const { body } = await find(muster, game);
    const { web } = body.ports;
    expect([web.port, web.is_tls]).toEqual([https_port, true]);
    const player = openWebSocketPlayer({
      name: web.hostname.replace(`.${SERVERS_DOMAIN}`, ''),
      url: `https://127.0.0.1:${https_port}`,
      path: `/socket?player_token=${body.player.token}`,
      tls: { ca, serverName: web.hostname },
    });
    opened.use(player);
    let sent = 0;
    await player.next(1);
    return {
      socket: player.socket,
      async echo() {
        sent += 1;
        player.socket.send(`move ${sent}`);
        expect((await player.next(sent + 1)).at(-1)).toBe(`move ${sent}`);
      },
    };
  }

  const player = await enter(first_certificate);
  await player.echo();
  const fingerprint = () => fingerprintAt(https_port, `x.${SERVERS_DOMAIN}`).catch(() => undefined);
  let certificate = first_certificate;
  for (let renewal = 0; renewal < 2; renewal += 1) {
    const before = await fingerprint();
    certificate = await issue();
    await waitFor(async () => {
      const now = await fingerprint();
      return now !== undefined && now !== before;
    }, 'the new certificate');
    await player.echo();
  }
  // A player who comes now trusts the new certificate only.
  const late = await enter(certificate);

  const other = await makeControlledGame(muster, SHAPE);
  expect((await find(muster, other)).status).toBe(200);
  await deploy(muster.api, other, other.matchmaker);
  expect((await find(muster, other)).status).toBe(200);
  await player.echo();
  await deploy(muster.api, game, game.matchmaker);
  expect((await find(muster, game)).status).toBe(200);
  for (const { socket, echo } of [player, late]) {
    await echo();
    expect(socket.readyState).toBe(WebSocket.OPEN);
  }
}, 300_000);
