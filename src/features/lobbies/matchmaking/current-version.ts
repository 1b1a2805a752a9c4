import { ServiceError } from '../../../platform/errors.ts';
import { type MaybePromise, whenKnown } from '../../../platform/maybe-promise.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';

/** Maximum number of checks of a request, if its namespace moves to another version again and again. */
const VERSION_CHANGES_MAX = 16;

/** Returns the namespace of a caller's token. Throws NAMESPACE_NOT_FOUND. */
export function requireNamespace(namespaces: Namespaces, namespace_id: string): MaybePromise<NamespaceRow> {
  return whenKnown(namespaces.find(namespace_id), requireFound);
}

function requireFound(namespace: NamespaceRow | undefined): NamespaceRow {
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
    const { namespace_id, version_id } = row;
    let decided: { result: Result } | { error: unknown };
    try {
      decided = { result: await decide(row) };
    } catch (error) {
      decided = { error };
    }
    row = await requireNamespace(namespaces, namespace_id);
    if (row.version_id !== version_id) continue;
    if ('error' in decided) throw decided.error;
    return { namespace: row, result: decided.result };
  }
  throw new ServiceError('DATABASE_BUSY', {});
}
