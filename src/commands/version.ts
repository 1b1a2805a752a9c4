import { VERSION } from '../service.ts';

export async function version(): Promise<number> {
  console.log(VERSION);
  return 0;
}
