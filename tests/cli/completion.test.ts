import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { find, makeControlledGame } from '../support/game-server.ts';
import { COMMAND } from '../support/program.ts';
import { shareService } from '../support/suite.ts';
import { openTerminal, waitForOutput } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

/** How an interactive shell without a configuration starts, and what loads the completion in it. */
const SHELLS = {
  bash: { start: ['bash', '--norc', '-i'], load: 'source <(muster complete bash)' },
  zsh: { start: ['zsh', '-f', '-i'], load: 'autoload -U compinit && compinit -u -D && source <(muster complete zsh)' },
  fish: { start: ['fish', '--no-config', '-i'], load: 'muster complete fish | source' },
};
const TAB = '\t';
/** Empties the line that is typed. */
const CTRL_U = '\x15';
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what the shell prints to go back
const WRITTEN_OVER = /.\x08/g;

const muster = shareService();
let home: string;
let environment: Record<string, string>;
let lobby_id: string;
/** A version whose name is a command. */
let version_id: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-completion-'));
  const program = join(home, 'muster');
  await Bun.write(program, `#!/bin/sh\nexec ${COMMAND.map((word) => Bun.$.escape(word)).join(' ')} "$@"\n`);
  await chmod(program, 0o755);
  const game = await makeControlledGame(muster);
  lobby_id = (await find(muster, game)).body.lobby.lobby_id;
  const version = { display_name: `$(touch ${join(home, 'touched')})`, config: {} };
  const path = `/cloud/games/${game.game_id}/versions`;
  ({ version_id } = (await muster.api.post(path, game.cloud_token, version)).body);
  environment = {
    PATH: `${home}:${process.env.PATH}`,
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    TERM: 'xterm',
    MUSTER_URL: muster.config.public_url,
    MUSTER_TOKEN: muster.administrator_token,
    MUSTER_GAME: game.game_id,
  };
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

const missing = Object.keys(SHELLS).filter((shell) => Bun.which(shell) === null);
if (missing.length > 0) console.log(`Not tried, because they are not installed: completions of ${missing.join(', ')}.`);

for (const [shell, { start, load }] of Object.entries(SHELLS)) {
  test.skipIf(missing.includes(shell))(
    `completion: in ${shell}, a press of the tab key completes commands and the id of a lobby`,
    async () => {
      const terminal = openTerminal(start, environment, { cwd: home });
      // The shell echoes the line, so what it prints is not in it as one word.
      terminal.write(`${load}; echo is_"loaded"\r`);
      await waitForOutput(terminal, 'is_loaded');
      terminal.write(`muster lobb${TAB}`);
      await waitFor(() => shownBy(terminal.output()).includes('muster lobbies'), 'the command');
      // The service may be too slow for the shell once: the key is pressed until the id is there.
      await waitFor(
        async () => {
          terminal.write(`${CTRL_U}muster lobbies show ${TAB}`);
          await Bun.sleep(1_000);
          return shownBy(terminal.output()).includes(lobby_id);
        },
        () => `the id of the lobby in:\n${terminal.output()}`,
      );
      terminal.write(`${CTRL_U}exit\r`);
      await terminal.exited;
    },
    300_000,
  );
}

test('completion: names of files for the arguments that are files; profiles, shells, game modes and machines', async () => {
  const suggest = async (...words: string[]) => {
    const child = Bun.spawn([...COMMAND, 'complete', '--', ...words], { cwd: home, env: environment, stdout: 'pipe' });
    return (await new Response(child.stdout).text()).trimEnd().split('\n');
  };
  for (const words of [
    ['backup', 'a'],
    ['restore', ''],
    ['init', '--from', 'r'],
  ]) {
    expect([words, await suggest(...words)]).toEqual([words, [':0']]);
  }
  await Bun.write(
    join(home, 'config/muster/profiles.json'),
    JSON.stringify({ profiles: { play: { url: 'https://play.example.com' } } }),
  );
  expect(await suggest('use', 'p')).toEqual(['play', ':4']);
  expect(await suggest('complete', '')).toEqual(['bash', 'zsh', 'fish', 'powershell', ':4']);
  // The service may be too slow once.
  await waitFor(async () => (await suggest('bots', '2', '--mode', '')).includes('default\tgame mode'), 'the game mode');
  await waitFor(async () => (await suggest('machines', '')).length > 1, 'the machine');
}, 300_000);

test.skipIf(missing.includes('bash'))(
  'completion: bash completes names of files where a command takes one',
  async () => {
    await Bun.write(join(home, 'backup-of-monday'), '');
    const terminal = openTerminal(SHELLS.bash.start, environment, { cwd: home });
    terminal.write(`${SHELLS.bash.load}; echo is_"loaded"\r`);
    await waitForOutput(terminal, 'is_loaded');
    terminal.write(`muster restore backup-of${TAB}`);
    await waitFor(() => shownBy(terminal.output()).includes('backup-of-monday'), 'the file');
    terminal.write(`${CTRL_U}exit\r`);
    await terminal.exited;
  },
  300_000,
);

for (const [shell, { start, load }] of Object.entries(SHELLS)) {
  test.skipIf(missing.includes(shell))(
    `completion: in ${shell}, a press of the tab key runs and writes nothing, whatever the names and the line contain`,
    async () => {
      const kept = join(home, 'kept.txt');
      await Bun.write(kept, 'content');
      const terminal = openTerminal(start, environment, { cwd: home });
      // A configuration may be loaded twice.
      terminal.write(`${load}; ${load}; echo is_"loaded"\r`);
      await waitForOutput(terminal, 'is_loaded');
      expect(shownBy(terminal.output())).not.toContain('readonly');
      await waitFor(
        async () => {
          terminal.write(`${CTRL_U}muster versions show ${TAB}${TAB}`);
          await Bun.sleep(1_000);
          return shownBy(terminal.output()).includes(version_id);
        },
        () => `the id of the version in:\n${terminal.output()}`,
      );
      terminal.write(`${CTRL_U}muster logs > ${kept} --al${TAB}`);
      await waitFor(() => shownBy(terminal.output()).includes('--all'), 'the option');
      terminal.write(`${CTRL_U}exit\r`);
      await terminal.exited;
      expect(existsSync(join(home, 'touched'))).toBe(false);
      expect(readFileSync(kept, 'utf8')).toBe('content');
    },
    300_000,
  );
}

/** Returns what a terminal printed, without its control sequences and without what was written over. */
function shownBy(output: string): string {
  return Bun.stripANSI(output).replace(WRITTEN_OVER, '');
}
