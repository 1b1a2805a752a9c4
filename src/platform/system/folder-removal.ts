const PATH = '/usr/bin:/bin';

/**
 * Removes a folder that another program has filled, whatever it made there. Uses rm(1), because Bun's functions take a
 * minute for folders that are a thousand levels deep.
 */
export async function removeFolder(path: string): Promise<void> {
  if (await run(['rm', '-rf', '--', path])) return;
  // Without root, a folder that its owner may not write to keeps what is in it.
  await run(['chmod', '-R', 'u+rwx', '--', path]);
  const child = Bun.spawn(['rm', '-rf', '--', path], { env: { PATH }, stdio: ['ignore', 'ignore', 'pipe'] });
  // The output has a line for each file that stays.
  const output = await readBeginning(child.stderr);
  const exit_code = await child.exited;
  if (exit_code !== 0) throw new Error(`the folder could not be removed: rm ended with ${exit_code}: ${output}`);
}

const ERROR_CHARACTERS_MAX = 1_000;

/** Runs a command. Returns whether it succeeded. */
async function run(command: string[]): Promise<boolean> {
  return (await Bun.spawn(command, { env: { PATH }, stdio: ['ignore', 'ignore', 'ignore'] }).exited) === 0;
}

/** Returns the beginning of an output, and drops the rest of it. */
async function readBeginning(output: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of output) {
    if (text.length < ERROR_CHARACTERS_MAX) text += decoder.decode(bytes, { stream: true });
  }
  return text.trim().slice(0, ERROR_CHARACTERS_MAX);
}
