import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { makeGame, uploadScript } from '../support/game.ts';
import { WEB_SERVER } from '../support/gateway.ts';
import { openBrowser, WITHOUT_BROWSER } from '../support/hub/browser.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { makeHome } from '../support/program.ts';
import { uploadSite } from '../support/site.ts';
import { waitFor } from '../support/wait.ts';

afterAll(() => {
  if (WITHOUT_BROWSER !== undefined) console.log(`Not tried, because ${WITHOUT_BROWSER}: games in a browser.`);
});

/** A game's page: finds a lobby, connects to its server, and shows what that says. */
const pageOf = (api_url: string) => `<!doctype html><title>waiting</title><script type="module">
  const body = JSON.stringify({ game_modes: ['default'] });
  const answer = await fetch('${api_url}/matchmaker/lobbies/find', { method: 'POST', body });
  const { ports: { web }, player } = await answer.json();
  const socket = new WebSocket(\`\${web.is_tls ? 'wss' : 'ws'}://\${web.host}/socket?player_token=\${player.token}\`);
  const received = [];
  socket.onmessage = ({ data }) => {
    received.push(data);
    if (received.length === 1) socket.send('a move');
    else document.title = JSON.stringify({ received, url: socket.url.split('?')[0] });
  };
  socket.onclose = ({ code }) => { document.title = 'closed ' + code; };
</script>`;

test.skipIf(WITHOUT_BROWSER !== undefined)(
  'browser: a page served by https finds a lobby and plays over wss, with a server that knows nothing of Muster',
  async () => {
    const https_port = findFreePort();
    const tls = { MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: String(https_port) };
    await using home = await makeHome({ MUSTER_DEMO: 'off' }, { has_prepared_database: true });
    // The uploads of this test do not trust the local authority.
    const first = await home.start();
    const game = await makeGame(first.api, first.administrator_token);
    const api_url = `https://localhost:${https_port}`;
    const { game_id, namespace_id, cloud_token: token } = game;
    const site_id = await uploadSite(first.api, game, { 'index.html': pageOf(api_url) });
    const image_id = await uploadScript(first.api, game, WEB_SERVER);
    await first.stop('SIGTERM');
    const program = await home.start({ settings: tls });
    const ports = { web: { port: 80, protocol: 'https', presence: 'gateway' } };
    const config = { cdn: { site_id }, matchmaker: { game_modes: { default: {} }, docker: { image_id, ports } } };
    const version = { display_name: 'Both', config };
    const { version_id } = await program.api.ok('POST', `/cloud/games/${game_id}/versions`, { token, body: version });
    const live = `/cloud/games/${game_id}/namespaces/${namespace_id}/version`;
    await program.api.ok('PUT', live, { token, body: { version_id } });
    const { game: its_game } = await program.api.ok('GET', `/cloud/games/${game_id}`, { token });

    await using browser = await openBrowser({ ca_file: join(home.data_directory, 'local-ca.pem') });
    const page = await browser.context.newPage();
    await page.goto(`https://${its_game.name_id}.sites.localhost:${https_port}/`);
    await page.waitForFunction('document.title !== "waiting"');
    const { received, url } = JSON.parse(await page.title());
    expect(['hello 127.0.0.1', 'hello ::1']).toContain(received[0]);
    expect(received[1]).toBe('a move');
    expect(url).toMatch(new RegExp(`^wss://[0-9a-f-]{36}-web\\.servers\\.localhost:${https_port}/socket$`));

    /** Returns how many players have connected to the lobby; none if it has ended, as it does without players. */
    async function countConnected(): Promise<number> {
      const { lobbies } = await program.api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token });
      return lobbies[0]?.total_player_count ?? 0;
    }
    expect(await countConnected()).toBe(1);
    await page.close();
    await waitFor(async () => (await countConnected()) === 0, 'the seat to be free');
  },
  300_000,
);
