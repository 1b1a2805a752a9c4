import { makeGame, uploadScript } from '../../tests/support/game.ts';
import { serversOf } from '../../tests/support/servers.ts';
import { waitFor } from '../../tests/support/wait.ts';
import { atMost, calm, exactly, type Fault, holds } from './fault.ts';
import { startAgain, stopBySignal } from './restarts.ts';

const TAKEN = 'this is the game server';
/** Like the unit in docs/install.md. */
const RESTART_AFTER_MS = 1_000;
const START_S_MAX = 20;
const START_S_WAITED = 40;
const CHECK_EVERY_MS = 10;

/** Takes the port of the API wherever it can, and answers its callers. */
const THIEF_SOURCE = `
const port = Number(new URL(process.env.SERVICE_API_ENDPOINT).port);
const fetch = () => new Response('${TAKEN}');
const wanted = ['127.0.0.1', '::1', '0.0.0.0', '::'];
setInterval(() => {
  for (const hostname of [...wanted]) {
    try {
      Bun.serve({ hostname, port, fetch });
      wanted.splice(wanted.indexOf(hostname), 1);
      console.log('took ' + hostname);
    } catch {}
  }
}, 1);
console.log('trying');
`;

export const portTaken: Fault = {
  name: 'port',
  title: "a game server takes the API's port while the service restarts, and [::1] at any time",
  async run(context) {
    const subject = await context.start();
    const { home, port, command } = subject;
    let { program } = subject;
    await context.phase(subject, 'calm', calm);
    const game = await makeGame(program.api, program.administrator_token);
    const servers = serversOf(program, game);
    const body = await servers.bodyOf(await uploadScript(program.api, game, THIEF_SOURCE));
    const { server } = await program.api.ok('POST', servers.path, { token: game.cloud_token, body });
    await waitFor(async () => (await servers.linesOf(server.id)).includes('trying'), 'the game server to try');

    for (const signal of context.is_quick ? (['SIGTERM'] as const) : (['SIGTERM', 'SIGKILL'] as const)) {
      const visitor = visit(port);
      await stopBySignal(context, { program }, signal);
      await Bun.sleep(RESTART_AFTER_MS);
      const again = await startAgain(context, { home }, { command }, START_S_WAITED);
      const taken = await visitor.stop();
      context.expect(exactly(`after ${signal}: requests that the game server answered`, 0, taken));
      context.expect(atMost(`after ${signal}: ready again, after`, START_S_MAX, again.seconds, 's'));
      context.note(`after ${signal}: starts until one succeeded`, String(again.starts));
      if (!again.program) {
        context.expect(holds(`after ${signal}: comes back by itself`, false, { figure: again.why }));
        return;
      }
      program = again.program;
    }
    const answer = await fetch(`http://[::1]:${port}/health/live`).then(
      (response) => response.text(),
      () => 'no answer',
    );
    context.expect(holds('[::1] is not the game server', answer !== TAKEN, { figure: answer }));
    await context.phase({ ...subject, program }, 'afterwards', calm);
  },
};

/** Sends requests all the time, like clients. Returns in the end how often a game server answered instead. */
function visit(port: number) {
  let is_over = false;
  let taken = 0;
  const visiting = (async () => {
    while (!is_over) {
      const asked = fetch(`http://127.0.0.1:${port}/health/live`, { signal: AbortSignal.timeout(1_000) });
      if ((await asked.then((response) => response.text()).catch(() => '')) === TAKEN) taken += 1;
      await Bun.sleep(CHECK_EVERY_MS);
    }
  })();
  return {
    async stop() {
      is_over = true;
      await visiting;
      return taken;
    },
  };
}
