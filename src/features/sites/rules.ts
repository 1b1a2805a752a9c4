import { ServiceError } from '../../platform/errors.ts';
import { GIB } from '../../platform/units.ts';

/** Less than 1 GiB. The reference API has less than 1,000,000,000 bytes. */
export const SITE_BYTES_MAX = GIB - 1;
export const FILES_MAX = 10_000;

/**
 * Throws an error that says what is wrong with the files of a site. Their paths are those that browsers request: relative,
 * separated by `/`, each once. None becomes a path on our disk.
 */
export function checkFiles(files: { path: string; content_length: number }[]): void {
  if (files.length === 0) throw new ServiceError('UPLOAD_INVALID', { error: 'a site needs at least one file' });
  if (files.length > FILES_MAX)
    throw new ServiceError('UPLOAD_INVALID', { error: `it has more than ${FILES_MAX} files; leave some out` });
  const paths = new Set<string>();
  for (const { path } of files) {
    const problem = pathProblem(path) ?? (paths.has(path) ? 'occurs twice' : undefined);
    if (problem) throw new ServiceError('UPLOAD_INVALID', { error: `the path ${JSON.stringify(path)} ${problem}` });
    paths.add(path);
  }
  const bytes = files.reduce((sum, { content_length }) => sum + content_length, 0);
  if (bytes > SITE_BYTES_MAX) throw new ServiceError('UPLOAD_TOO_LARGE', { max_content_length: SITE_BYTES_MAX });
}

function pathProblem(path: string): string | undefined {
  if (/[\p{Cc}\\]/u.test(path)) return 'has a control character or a backslash';
  if (!path.isWellFormed()) return 'is not well-formed Unicode';
  const names = path.split('/');
  if (names.includes('')) return 'has an empty name in it: it starts or ends with a slash, or has two in a row';
  return names.some((name) => name === '.' || name === '..') ? 'has "." or ".." in it' : undefined;
}
