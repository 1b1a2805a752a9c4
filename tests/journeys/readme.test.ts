import { afterAll, beforeAll, expect, test } from 'bun:test';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { commandOf, EXECUTABLE, type Home, makeHome, type Program } from '../support/program.ts';

const ROOT = resolve(import.meta.dir, '../..');
const COMMAND = commandOf(EXECUTABLE === undefined ? 'source' : 'executable');
const CURL_PAGE = 'docs/getting-started-with-curl.md';
/** The line that makes the executable. The run has one, or the source. */
const BUILD = /^npx .* run build$/m;

let home: Home;
let program: Program;
/** The home of the user, with the command in a directory for programs. */
let user: string;
beforeAll(async () => {
  user = await mkdtemp(join(tmpdir(), 'muster-user-'));
  await Bun.write(join(user, 'bin/muster'), `#!/bin/sh\nexec ${COMMAND.join(' ')} "$@"\n`);
  await chmod(join(user, 'bin/muster'), 0o755);
  home = await makeHome();
  program = await home.start();
}, 90_000);
afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await rm(user, { recursive: true, force: true });
});

test('readme: the commands of "Your first game" run as printed', async () => {
  const [setup = '', ...steps] = await readSteps('README.md');
  expect(setup).toMatch(BUILD);
  const made = setup.replace(BUILD, '').replace('$PWD/dist', join(user, 'bin'));
  const { exit_code, output, errors } = await runInBash([made, ...steps].join('\n'));
  expect([exit_code, errors]).toEqual([0, expect.stringContaining('Wrote muster.yaml. Next: muster deploy')]);
  expect(errors).toContain(`Logged in to ${program.url}.`);
  expect(errors.match(/a lobby of it was ready after/g)).toHaveLength(2);
  expect(output).toMatch(/^tanks prod: 0\.0\.1 → \S+ \(/m);
  expect(output).toContain(`${program.url}/demo#pub_`);
  expect(output).toMatch(/^connected {2}[1-9]/m);
  expect(output).toMatch(/^tanks +prod +\S+ +\d+ +\d+ +\d+$/m);
  expect(output).toMatch(/lobby [0-9a-f-]{36} is ready at port \d+/);
  expect(output).toMatch(/^tanks prod: with a greeting → \S+$/m);
}, 90_000);

test('readme: its muster.yaml is what init writes', async () => {
  const readme = await Bun.file(resolve(ROOT, 'README.md')).text();
  const [, shown = ''] = /```yaml\n(.*?)```/s.exec(readme) ?? [];
  const script =
    'mkdir ~/shown && cp examples/room.ts ~/shown/server.ts && cd ~/shown && muster init && cat muster.yaml';
  const { output } = await runInBash(`PATH=${join(user, 'bin')}:$PATH; ${script}`);
  expect(output).toBe(shown.replace('game: tanks', 'game: shown').replace('http://127.0.0.1:8080', program.url));
}, 90_000);

/** Ends every server of the game, as happens to a slow reader before the command that reads its log. */
const END_ALL_SERVERS = `
SERVERS=/games/$GAME/environments/$PROD/servers
for id in $(call GET $SERVERS | grep -o '"id":"[^"]*' | cut -d '"' -f 4); do
  until call GET "$SERVERS/$id/log-lines?stream=std_out" | grep -q 'is ready'; do sleep 0.1; done
  call DELETE $SERVERS/$id; echo
done
until call GET $SERVERS | grep -q '"servers":\\[\\]'; do sleep 0.1; done
`;

test('with curl: the commands run as printed, also when read slowly', async () => {
  const steps = await readSteps(CURL_PAGE);
  const last = steps.pop() ?? '';
  const { exit_code, output, errors } = await runInBash([...steps, END_ALL_SERVERS, last].join('\n'));
  expect({ exit_code, errors }).toEqual({ exit_code: 0, errors: '' });
  expect(output).toMatch(/game [0-9a-f-]{36}, namespace prod [0-9a-f-]{36}\n/);
  expect(output).toContain(`${program.url}/demo#pub_`);
  expect(output.match(/"player":\{"token":"player\./g)).toHaveLength(6);
  expect(output).toMatch(/"text":"lobby [0-9a-f-]{36} is ready at port \d+/);
}, 90_000);

test('with curl: the `field` command prints the answer and fails if the field is missing', async () => {
  const [definitions = ''] = await readSteps(CURL_PAGE);
  const { exit_code, errors } = await runInBash(
    `${definitions}\nGROUP=$(call POST /group/groups -d '{}' | field group_id)`,
  );
  expect(exit_code).toBe(1);
  expect(errors).toContain('no group_id: {"code":"API_BAD_BODY"');
}, 90_000);

/** Returns the shell blocks of a page's first game, run against the program. */
async function readSteps(page: string): Promise<string[]> {
  const text = await Bun.file(resolve(ROOT, page)).text();
  const [, after = ''] = text.split(/^#+ Your first game.*$/m);
  const [section = ''] = after.split('\n## ');
  const steps = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, step = '']) =>
    step.replace('http://127.0.0.1:8080', program.url).replace('muster-data/', `${home.data_directory}/`),
  );
  expect(steps.length).toBeGreaterThan(5);
  return steps;
}

async function runInBash(script: string) {
  const { PATH = '' } = process.env;
  const where = { MUSTER_PORT: new URL(program.url).port, MUSTER_DATA: home.data_directory };
  const env = { PATH, HOME: user, ...where };
  const child = Bun.spawn(['bash', '-e', '-c', script], { cwd: ROOT, env, stdout: 'pipe', stderr: 'pipe' });
  const [exit_code, output, errors] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { exit_code, output, errors };
}
