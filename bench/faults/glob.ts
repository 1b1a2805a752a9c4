import { makeGame } from '../../tests/support/game.ts';
import { showSite, uploadSite } from '../../tests/support/site.ts';
import { calm, type Fault, holds } from './fault.ts';
import { stopBySignal } from './restarts.ts';

const GLOB = `${'*a'.repeat(7)}*b`;
const PATH = 'a'.repeat(1_000);
const SECONDS = 15;

export const glob: Fault = {
  name: 'glob',
  title: `a site's route has the glob ${GLOB}, and a file of 1,000 × "a" is requested`,
  async run(context) {
    const subject = await context.start();
    const { api, administrator_token, url } = subject.program;
    await context.phase(subject, 'calm', calm);
    const game = await makeGame(api, administrator_token);
    const { name_id } = (await api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token })).game;
    const site_id = await uploadSite(api, game, { [PATH]: 'content' });
    const headers = [{ name: 'X-Matched', value: 'yes' }];
    const routes = [{ glob: GLOB, priority: 1, middlewares: [{ kind: { custom_headers: { headers } } }] }];
    const refusal = await showSite(api, game, { site_id, routes }).then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (refusal !== undefined) context.note('the version is refused', refusal);
    const read = async () => {
      const signal = AbortSignal.timeout(SECONDS * 1_000);
      const asked = fetch(`${url}/${PATH}`, { headers: { host: `${name_id}.sites.localhost` }, signal });
      const status = await asked.then((response) => response.status).catch(() => 'no answer');
      await Bun.sleep(2_000);
      return status;
    };
    const { result } = await context.phase(subject, 'while it is matched', read);
    context.expect(holds('the file is answered', result !== 'no answer', { figure: String(result) }));
    await stopBySignal(context, subject, 'SIGTERM');
  },
};
