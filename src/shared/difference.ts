/** A member in which two configurations differ. A side without it is undefined. */
export interface Difference {
  path: string;
  before: unknown;
  after: unknown;
}

/** Returns where two values of JSON differ, in the order of their paths. Lists are compared as a whole. */
export function differencesOf(before: unknown, after: unknown, path = ''): Difference[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return names.flatMap((name) => differencesOf(before[name], after[name], path === '' ? name : `${path}.${name}`));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
