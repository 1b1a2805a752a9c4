import { LRUCache } from 'lru-cache';
import type { NamespaceRow, Namespaces } from '../namespaces/namespaces.ts';

/** What bcrypt takes account of; a longer password would be cut. */
const PASSWORD_BYTES_MAX = 72;
const REMEMBERED_MAX = 1_000;
const REMEMBERED_FOR_MS = 60_000;
/** Comparisons take a quarter of a second each, on threads of their own. */
const AT_ONCE_MAX = 4;

/** Who may see the site of a namespace that asks for a user and password (RFC 7617). */
export function createAccess(namespaces: Namespaces) {
  const admitted = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: REMEMBERED_FOR_MS });
  let comparing = 0;

  async function isUser(namespace_id: string, user: string, password: string): Promise<boolean> {
    const users = await namespaces.cdn.users(namespace_id);
    const hash = users.find((known) => known.user === user)?.password;
    if (hash === undefined || Buffer.byteLength(password) > PASSWORD_BYTES_MAX) return false;
    // A changed password or user has another key: what is remembered is never out of date.
    const key =
      Bun.hash(`${namespace_id} ${hash}`).toString(36) + Bun.SHA256.hash(`${user}:${password}:${hash}`, 'base64');
    if (admitted.has(key)) return true;
    if (comparing >= AT_ONCE_MAX) return false;
    comparing += 1;
    try {
      const is_same = await Bun.password.verify(password, hash);
      if (is_same) admitted.set(key, true);
      return is_same;
    } finally {
      comparing -= 1;
    }
  }

  return {
    /** Whether a request with this Authorization header is let in. */
    async admits({ namespace_id, auth_type }: NamespaceRow, authorization: string | null): Promise<boolean> {
      if (auth_type === 'none') return true;
      const [, credentials] = /^basic +([A-Za-z0-9+/=]+)$/i.exec(authorization ?? '') ?? [];
      const text = Buffer.from(credentials ?? '', 'base64').toString();
      const colon = text.indexOf(':');
      return colon > 0 && (await isUser(namespace_id, text.slice(0, colon), text.slice(colon + 1)));
    },
  };
}
