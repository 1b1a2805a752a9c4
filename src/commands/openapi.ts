import { findAsset } from '../platform/assets.ts';

/** Prints the API document. A test compares it with the one that the service serves. */
export async function openapi(): Promise<number> {
  console.log(await Bun.file(findAsset('docs/openapi.json')).text());
  return 0;
}
