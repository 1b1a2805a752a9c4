import { ServiceError } from '../../../platform/errors.ts';
import { type Soon, whenThere } from '../../../platform/soon.ts';
import type { Captcha } from '../../captcha/captcha.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';
import type { FindBody } from '../wire.ts';
import type { Draft } from './receipts.ts';
import type { Asking } from './request-context.ts';

/** The namespace of a caller's token. Throws NAMESPACE_NOT_FOUND. */
export function requireNamespace(namespaces: Namespaces, namespace_id: string): Soon<NamespaceRow> {
  return whenThere(namespaces.find(namespace_id), (namespace) => {
    if (!namespace) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
    return namespace;
  });
}

/** What is settled about a request before it wants a seat. */
export function createSettling({ namespaces, captcha }: { namespaces: Namespaces; captcha: Pick<Captcha, 'admit'> }) {
  /**
   * Gives what refuses robots: nothing has been made yet, and no seat is held. One captcha is enough for a request, however
   * often its namespace moves to another version.
   */
  function openGate({ captcha: solved }: Pick<FindBody, 'captcha'>, asking: Asking, draft: Draft | undefined) {
    let is_human = false;
    return (place: { game_id: string; namespace_id: string; version_id: string }): Soon<void> => {
      if (is_human) return;
      draft?.reach('checked');
      let was_asked = false;
      const admitted = captcha.admit(place, { ...asking, captcha: solved }, (decision) => {
        was_asked = true;
        draft?.note({ captcha: decision });
        draft?.reach('captcha');
      });
      return whenThere(admitted, () => {
        is_human = was_asked;
      });
    };
  }

  /**
   * What is decided about a request by the version that its namespace is on when that is done: what a version that it has
   * left meanwhile says, a no too, does not count. With the namespace as it is then.
   */
  function settle<Decided>(
    namespace: NamespaceRow,
    decide: (row: NamespaceRow) => Soon<Decided>,
  ): Soon<{ row: NamespaceRow; decided: Decided }> {
    const { namespace_id, version_id } = namespace;
    return whenThere(outcomeOf(decide, namespace), (outcome) =>
      whenThere(requireNamespace(namespaces, namespace_id), (row) => {
        if (row.version_id !== version_id) return settle(row, decide);
        if ('error' in outcome) throw outcome.error;
        return { row, decided: outcome.decided };
      }),
    );
  }

  return { openGate, settle };
}

type Outcome<Decided> = { decided: Decided } | { error: unknown };

/** What is decided, or what it fails with. */
function outcomeOf<Decided>(decide: (row: NamespaceRow) => Soon<Decided>, row: NamespaceRow): Soon<Outcome<Decided>> {
  try {
    const decided = decide(row);
    if (!(decided instanceof Promise)) return { decided };
    return decided.then(
      (value) => ({ decided: value }),
      (error: unknown) => ({ error }),
    );
  } catch (error) {
    return { error };
  }
}
