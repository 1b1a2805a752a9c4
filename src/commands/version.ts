import { VERSION } from '../platform/version.ts';
import type { CommandOutput } from './command-output.ts';

/** Shows the version of this executable. */
export async function version(_: string[], output: CommandOutput): Promise<number> {
  output.show({ version: VERSION }, VERSION);
  return 0;
}
