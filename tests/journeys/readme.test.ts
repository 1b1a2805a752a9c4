import { expect, test } from 'bun:test';
import { resolve } from 'node:path';
import { makeHome, type Program } from '../support/program.ts';

const ROOT = resolve(import.meta.dir, '../..');
/** Ends every server of the game, as happens to a slow reader before the command that reads its log. */
const END_ALL_SERVERS = `
SERVERS=/games/$GAME/environments/$PROD/servers
for id in $(call GET $SERVERS | grep -o '"id":"[^"]*' | cut -d '"' -f 4); do
  until call GET "$SERVERS/$id/log-lines?stream=std_out" | grep -q 'is ready'; do sleep 0.1; done
  call DELETE $SERVERS/$id; echo
done
until call GET $SERVERS | grep -q '"servers":\\[\\]'; do sleep 0.1; done
`;

test('readme: the commands of "Your first game" run as printed, also when read slowly', async () => {
  await using home = await makeHome();
  const program = await home.start();
  const steps = await readSteps(program, home.data_directory);
  const last = steps.pop() ?? '';
  const { exit_code, output, errors } = await runInBash([...steps, END_ALL_SERVERS, last].join('\n'));
  expect({ exit_code, errors }).toEqual({ exit_code: 0, errors: '' });
  expect(output).toMatch(/game [0-9a-f-]{36}, namespace prod [0-9a-f-]{36}\n/);
  expect(output).toContain(`${program.url}/demo#pub_`);
  expect(output.match(/"player":\{"token":"player\./g)).toHaveLength(6);
  expect(output).toMatch(/"text":"lobby [0-9a-f-]{36} is ready at port \d+/);
}, 90_000);

test('readme: its `field` command prints the answer and fails if the field is missing', async () => {
  await using home = await makeHome();
  const [definitions = ''] = await readSteps(await home.start(), home.data_directory);
  const { exit_code, errors } = await runInBash(
    `${definitions}\nGROUP=$(call POST /group/groups -d '{}' | field group_id)`,
  );
  expect(exit_code).toBe(1);
  expect(errors).toContain('no group_id: {"code":"API_BAD_BODY"');
}, 90_000);

/** Returns the shell blocks of "Your first game", run against this program. */
async function readSteps({ url }: Program, data_directory: string): Promise<string[]> {
  const readme = await Bun.file(resolve(ROOT, 'README.md')).text();
  const [, after = ''] = readme.split('## Your first game');
  const [section = ''] = after.split('\n## ');
  const steps = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, step = '']) =>
    step.replace('http://127.0.0.1:8080', url).replace('muster-data/', `${data_directory}/`),
  );
  expect(steps.length).toBeGreaterThan(5);
  return steps;
}

async function runInBash(script: string) {
  const { PATH = '' } = process.env;
  const child = Bun.spawn(['bash', '-e', '-c', script], { cwd: ROOT, env: { PATH }, stdout: 'pipe', stderr: 'pipe' });
  const [exit_code, output, errors] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { exit_code, output, errors };
}
