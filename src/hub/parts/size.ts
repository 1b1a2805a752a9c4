const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'];
const STEP = 1_000;

/** Returns a number of bytes in its largest unit. */
export function sizeOf(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, bytes < STEP ? 0 : Math.floor(Math.log(bytes) / Math.log(STEP)));
  const value = bytes / STEP ** unit;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}
