/** Returns a number of bytes as `46.1 MB` or `3.4 kB`. */
export function showBytes(bytes: number): string {
  return bytes < 100_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
