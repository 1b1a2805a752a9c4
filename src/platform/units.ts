export { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../shared/units.ts';

export const KIB = 1_024;
export const MIB = 1_024 * KIB;
export const GIB = 1_024 * MIB;
