import { ServiceError } from '../../../platform/errors.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';

/** Maximum number of checks of a request, if its namespace moves to another version again and again. */
const VERSION_CHANGES_MAX = 16;

/** Returns the namespace of a caller's token. Throws NAMESPACE_NOT_FOUND. */
export async function requireNamespace(namespaces: Namespaces, namespace_id: string): Promise<NamespaceRow> {
  const namespace = await namespaces.find(namespace_id);
  if (!namespace) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
  return namespace;
}

/**
 * Calls `decide` for the version that the namespace is on, and again if it moves to another version meanwhile, because
 * neither a result nor an error for an old version counts. Returns the result and the namespace at that time.
 */
export async function atCurrentVersion<Result>(
  namespaces: Namespaces,
  namespace: NamespaceRow,
  decide: (namespace: NamespaceRow) => Promise<Result>,
): Promise<{ namespace: NamespaceRow; result: Result }> {
  let row = namespace;
  for (let changes = 0; changes < VERSION_CHANGES_MAX; changes += 1) {
    const decided = await decide(row).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
    const { version_id } = row;
    row = await requireNamespace(namespaces, row.namespace_id);
    if (row.version_id !== version_id) continue;
    if ('error' in decided) throw decided.error;
    return { namespace: row, result: decided.result };
  }
  throw new ServiceError('DATABASE_BUSY', {});
}
