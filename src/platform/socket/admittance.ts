import { ServiceError } from '../errors.ts';
import { toCallersError } from '../http/answers.ts';
import type { Cors } from '../http/cors.ts';
import { limitOf, nameCounted, nameWatcher } from '../http/counting.ts';
import { createDoor, createRecognition, lookAt, type Tenants, type TokenlessOrigins } from '../http/pipeline.ts';
import { createPathReader, isWatched, type Route } from '../http/route.ts';
import { assertWithin, type Limits } from '../limits/limits.ts';
import type { Caller } from '../tokens/caller.ts';
import type { Tokens } from '../tokens/tokens.ts';
import { readCallerKey } from '../watch/caller-slots.ts';
import { subscribeAll } from '../watch/feed.ts';
import type { View } from '../watch/views.ts';
import type { Authorization, Watch } from '../watch/watch.ts';

const CHECK_AGAIN_AFTER_MS = 1_000;

/** Somebody asks to watch what a GET of the path would answer. */
export interface Asking {
  caller: Caller | undefined;
  /** Of the page that opened the socket. */
  origin: string | null;
  address: string;
  path: string;
  watch_index: string | undefined;
}

/** What he may watch. */
export interface Admitted {
  sight: View;
  /** Where he stands; undefined has seen nothing. */
  number: number | undefined;
  /** Whether something was heard because of which he may not watch it any more: nothing must be sent to him until it is known. */
  isDoubtful(): boolean;
  /** Gives back his place. */
  leave(): void;
}

interface Verdict {
  /** It has become doubtful whether he may. */
  onDoubted(): void;
  /** He may not watch it any more. */
  onRefused(error: unknown): void;
  /** It was doubtful, and he still may. */
  onAdmitted(): void;
}

export interface AdmittanceDependencies {
  routes: Route[];
  tokens: Tokens;
  tenants: Tenants;
  origins: TokenlessOrigins;
  watch: Watch;
  cors: Cors;
  limits: Limits;
}

export type Admittance = ReturnType<typeof createAdmittance>;

/** Lets subscriptions in as the same GET is let in: the same routes, tokens, tenants, origins and limits. */
export function createAdmittance(dependencies: AdmittanceDependencies) {
  const { routes, tokens, tenants, origins, watch, cors, limits } = dependencies;
  const recognise = createRecognition(origins);
  const doors = routes
    .filter(isWatched)
    .map((route) => ({ route, readPath: createPathReader(route.path), door: createDoor(route, tenants) }));
  const gets = routes.filter(({ method }) => method === 'GET').map(({ path }) => createPathReader(path));

  /** The route of a path and what stands in it. Throws API_NOT_FOUND or WATCH_NOT_WATCHABLE. */
  function findDoor(path: string) {
    const parts = path.split('/');
    for (const { route, door, readPath } of doors) {
      const params = readPath(parts);
      if (params) return { route, door, params };
    }
    const is_there = gets.some((readPath) => readPath(parts));
    throw new ServiceError(is_there ? 'WATCH_NOT_WATCHABLE' : 'API_NOT_FOUND', {});
  }

  /** Asks again whether he may when there is news of it, until `leave` is called. */
  function guard({ topics, check }: Authorization, { onDoubted, onRefused, onAdmitted }: Verdict) {
    let retry: ReturnType<typeof setTimeout> | undefined;
    let checks = 0;
    let is_doubtful = false;
    const checkAgain = async () => {
      clearTimeout(retry);
      is_doubtful = true;
      onDoubted();
      checks += 1;
      const this_check = checks;
      try {
        await check();
        // What was heard since may not have been in it.
        if (this_check !== checks) return;
        is_doubtful = false;
        onAdmitted();
      } catch (failure) {
        if (toCallersError(failure).status < 500) onRefused(failure);
        else if (this_check === checks) retry = setTimeout(checkAgain, CHECK_AGAIN_AFTER_MS);
      }
    };
    const unsubscribe = subscribeAll(watch, topics, checkAgain);
    return {
      isDoubtful: () => is_doubtful,
      leave() {
        checks += 1;
        clearTimeout(retry);
        unsubscribe();
      },
    };
  }

  return {
    /** Who bears a token, and until when. Throws TOKEN_INVALID or CLAIMS_ENTITLEMENT_EXPIRED. */
    read: tokens.read,
    /** Goes on asking whether he may, and says so, until he leaves. Throws what the GET would be refused with. */
    async admit({ caller: bearer, origin, address, path, watch_index }: Asking, verdict: Verdict): Promise<Admitted> {
      const url = URL.parse(path, 'http://muster');
      if (url?.host !== 'muster') throw new ServiceError('API_NOT_FOUND', {});
      const { route, door, params } = findDoor(url.pathname);
      const headers = new Headers(origin === null ? {} : { origin });
      cors.headersFor({ headers }, url.pathname);
      const recognised = bearer || !route.is_tokenless ? undefined : await recognise(headers);
      const caller = bearer ?? recognised?.caller;
      const index = watch.readIndex(watch_index ?? url.searchParams.get('watch_index') ?? undefined);
      const limit = limitOf(route, index !== undefined);
      const counted = await limits.count(
        limit,
        nameCounted(limit, caller, () => address),
      );
      if (counted) assertWithin(counted);
      // The address is known already: it is counted from the first on.
      const freeSlot = watch.takeSlot(readCallerKey(nameWatcher(caller, () => address)));
      let guarded: ReturnType<typeof guard> | undefined;
      try {
        const asked = { caller: route.allow === 'anyone' ? undefined : caller, params, search: url.searchParams };
        const { question, admission = recognised?.admission } = await door(asked);
        // Guarded before the last look: what changes in between is heard.
        if (admission) guarded = guard(admission, verdict);
        await admission?.check();
        const sight = await lookAt(route, question);
        return {
          sight,
          number: index,
          isDoubtful: () => guarded?.isDoubtful() ?? false,
          leave() {
            guarded?.leave();
            freeSlot();
          },
        };
      } catch (error) {
        guarded?.leave();
        freeSlot();
        throw error;
      }
    },
  };
}
