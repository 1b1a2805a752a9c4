import { afterAll, beforeAll, expect, test } from 'bun:test';
import { resolve } from 'node:path';
import { createProgram } from '../../src/cli/program.ts';
import { type Newcomer, openNewcomer, readFirstGame } from '../support/newcomer.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';

const ROOT = resolve(import.meta.dir, '../..');
const CURL_PAGE = 'docs/getting-started-with-curl.md';

let home: Home;
let program: Program;
let newcomer: Newcomer;
beforeAll(async () => {
  home = await makeHome();
  program = await home.start();
  newcomer = await openNewcomer(home, program);
}, 300_000);
afterAll(async () => {
  await newcomer[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

test('readme: the commands of "Your first game" run as printed', async () => {
  const steps = await readFirstGame(newcomer);
  const { exit_code, output, errors } = await newcomer.run(steps.join('\n'));
  expect([exit_code, errors]).toEqual([0, expect.stringContaining('Wrote muster.yaml. Next: muster deploy')]);
  expect(errors).toContain(`Logged in to ${program.url}.`);
  expect(errors.match(/a lobby of the version was ready after/g)).toHaveLength(2);
  expect(output).toMatch(/^tanks prod: 0\.0\.1 → \S+ \(/m);
  expect(output).toContain(`${program.url}/demo#pub_`);
  expect(output).toMatch(/^connected {2}[1-9]/m);
  expect(output).toMatch(/^tanks +prod +\S+ +\d+ +\d+ +\d+$/m);
  expect(output).toMatch(/lobby [0-9a-f-]{36} is ready at port \d+/);
  expect(output).toMatch(/^tanks prod: with a greeting → \S+$/m);
}, 300_000);

test('readme: its muster.yaml is what init writes', async () => {
  const readme = await Bun.file(resolve(ROOT, 'README.md')).text();
  const [, shown = ''] = /```yaml\n(.*?)```/s.exec(readme) ?? [];
  const script =
    'mkdir ~/shown && cp examples/room.ts ~/shown/server.ts && cd ~/shown && muster init && cat muster.yaml';
  const { output } = await newcomer.run(`PATH=${newcomer.programs}:$PATH; ${script}`);
  expect(output).toBe(shown.replace('game: tanks', 'game: shown').replace('http://127.0.0.1:8080', program.url));
}, 300_000);

test('readme: each line of "The command line" is a command with options that it has, and a comment', async () => {
  const readme = await Bun.file(resolve(ROOT, 'README.md')).text();
  const [, section = ''] = readme.split('\n## The command line\n');
  const [, block = ''] = /```sh\n(.*?)```/s.exec(section) ?? [];
  const lines = block.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(5);
  for (const line of lines) {
    expect(line).toMatch(/^muster [^#]+ +# [^#]+$/);
    const [, ...words] = line.replace(/#.*/, '').trim().split(/\s+/);
    const program = createProgram().hook('preAction', (_, command) => {
      throw new Error(`${command.name()} is accepted`);
    });
    // What follows is a command of its own.
    if (words[0] === 'test') expect(words[1]).toBe('--');
    else await expect(program.parseAsync(words, { from: 'user' })).rejects.toThrow(/is accepted$/);
  }
});

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
  const steps = await newcomer.readSteps(CURL_PAGE);
  const last = steps.pop() ?? '';
  const { exit_code, output, errors } = await newcomer.run([...steps, END_ALL_SERVERS, last].join('\n'));
  expect({ exit_code, errors }).toEqual({ exit_code: 0, errors: '' });
  expect(output).toMatch(/game [0-9a-f-]{36}, namespace prod [0-9a-f-]{36}\n/);
  expect(output).toContain(`${program.url}/demo#pub_`);
  expect(output.match(/"player":\{"token":"player\./g)).toHaveLength(6);
  expect(output).toMatch(/"text":"lobby [0-9a-f-]{36} is ready at port \d+/);
}, 300_000);

test('with curl: the `field` command prints the answer and fails if the field is missing', async () => {
  const [definitions = ''] = await newcomer.readSteps(CURL_PAGE);
  const { exit_code, errors } = await newcomer.run(
    `${definitions}\nGROUP=$(call POST /group/groups -d '{}' | field group_id)`,
  );
  expect(exit_code).toBe(1);
  expect(errors).toContain('no group_id: {"code":"API_BAD_BODY"');
}, 300_000);
