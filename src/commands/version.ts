import { VERSION } from '../platform/version.ts';

export async function version(): Promise<number> {
  console.log(VERSION);
  return 0;
}
