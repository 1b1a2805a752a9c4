const PATH = '/usr/bin:/bin';

/**
 * Removes a folder that another program has filled, whatever it made there. By rm(1), because the functions of our runtime
 * take a minute for folders that are a thousand levels deep.
 */
export async function removeFolder(path: string): Promise<void> {
  if ((await run(['rm', '-rf', '--', path])) === '') return;
  // Without root, a folder that its owner may not write to keeps what is in it.
  await run(['chmod', '-R', 'u+rwx', '--', path]);
  const failure = await run(['rm', '-rf', '--', path]);
  if (failure !== '') throw new Error(`the folder could not be removed: ${failure}`);
}

const ERROR_CHARACTERS_MAX = 1_000;

/** Runs a command. Returns what it wrote about its failure; an empty text if it succeeded. */
async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { env: { PATH }, stdio: ['ignore', 'ignore', 'pipe'] });
  const text = await new Response(child.stderr).text();
  const exit_code = await child.exited;
  return exit_code === 0 ? '' : `${command[0]} ended with ${exit_code}: ${text.trim().slice(0, ERROR_CHARACTERS_MAX)}`;
}
