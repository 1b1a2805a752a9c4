import { availableParallelism } from 'node:os';
import { LRUCache } from 'lru-cache';
import type { WebRequest } from '../../platform/http/site.ts';
import { inEachMinute } from '../../platform/limits/limit.ts';
import { countingKeyOf } from '../../platform/networks.ts';
import { hasErrorCode } from '../../platform/system/system-errors.ts';
import type { NamespaceRow, Namespaces } from '../namespaces/namespaces.ts';
import { createTurns } from './turns.ts';

/** bcrypt uses only this many bytes. Longer passwords are refused, because some tools truncate and others hash them. */
const PASSWORD_BYTES_MAX = 72;
const REMEMBERED_MAX = 10_000;
const REMEMBERED_FOR_MS = 10 * 60_000;
/**
 * Maximum number of concurrent comparisons: half of the processors. Each takes a thread for a quarter of a second or
 * more, and the same threads read files.
 */
const TURNS = { at_once: Math.max(1, Math.floor(availableParallelism() / 2)), waiting_max: 64, wait_ms: 10_000 };
/** Limits comparisons per site and address. A page needs one, however many files it has. */
const COMPARISONS = inEachMinute('site-passwords', 60);

interface SiteUser {
  user: string;
  password: string;
}

/** Creates the check of user and password for sites that require one (RFC 7617). */
export function createAccess(namespaces: Namespaces) {
  const known_visitors = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: REMEMBERED_FOR_MS });
  /** Waiting and running comparisons. Requests with the same password share one. */
  const comparisons = new Map<string, Promise<boolean>>();
  const takeTurn = createTurns(TURNS);

  async function hasValidPassword(namespace_id: string, given: SiteUser, web_request: WebRequest): Promise<boolean> {
    if (Buffer.byteLength(given.password) > PASSWORD_BYTES_MAX) return false;
    const users = await namespaces.cdn.users(namespace_id);
    const known = users.find(({ user }) => user === given.user);
    const hash = (known ?? chooseDecoy(given.user, users))?.password;
    if (hash === undefined) return false;
    // A changed password or user has another key, so cached results stay correct.
    const key = Bun.SHA256.hash(JSON.stringify([namespace_id, given.user, given.password, hash]), 'base64');
    if (known && known_visitors.has(key)) return true;
    const address = countingKeyOf(web_request.address);
    const is_same = await compareOnce(`${key} ${address}`, async () => {
      await web_request.count(COMPARISONS, namespace_id);
      return await takeTurn({ site: namespace_id, address }, () => isPasswordOf(given.password, hash));
    });
    if (known && is_same) known_visitors.set(key, true);
    return known !== undefined && is_same;
  }

  async function compareOnce(key: string, compare: () => Promise<boolean>): Promise<boolean> {
    const comparing = comparisons.get(key) ?? compare().finally(() => comparisons.delete(key));
    comparisons.set(key, comparing);
    return await comparing;
  }

  return {
    /**
     * Returns whether a visitor may see the site. Throws API_RATE_LIMIT, or CDN_BUSY if the password cannot be compared
     * now.
     */
    async maySee({ namespace_id, auth_type }: NamespaceRow, web_request: WebRequest): Promise<boolean> {
      if (auth_type === 'none') return true;
      const given = readCredentials(web_request.request.headers.get('authorization'));
      return given !== undefined && (await hasValidPassword(namespace_id, given, web_request));
    },
  };
}

/** Returns whether a hash is that of a password. An earlier release accepted hashes that none can be compared with. */
async function isPasswordOf(password: string, hash: string): Promise<boolean> {
  try {
    return await Bun.password.verify(password, hash);
  } catch (error) {
    if (hasErrorCode(error, 'PASSWORD_INVALID_ENCODING')) return false;
    throw error;
  }
}

function readCredentials(authorization: string | null): SiteUser | undefined {
  const [, credentials] = /^basic +([A-Za-z0-9+/=]+)$/i.exec(authorization ?? '') ?? [];
  const text = Buffer.from(credentials ?? '', 'base64').toString();
  const colon = text.indexOf(':');
  return colon > 0 ? { user: text.slice(0, colon), password: text.slice(colon + 1) } : undefined;
}

/**
 * Returns the user whose hash is compared if the site has no user of this name, so that the duration of an answer does
 * not reveal which users exist. It is always the same user for a name, because hashes differ in cost.
 */
function chooseDecoy(user: string, users: SiteUser[]): SiteUser | undefined {
  return users[Number(Bun.hash(user) % BigInt(Math.max(1, users.length)))];
}
