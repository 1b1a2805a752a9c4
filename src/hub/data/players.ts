import { toAddress } from '../../shared/ports.ts';
import type { Answer, Parameters, RequestBody } from './api.ts';
import { post } from './api.ts';
import type { Receipt } from './receipts.ts';
import { Refused } from './request.ts';
import { callApiAs } from './session.ts';
import { solveWork } from './worker.ts';

const PUBLIC_TOKENS = '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public';
type Scope = Parameters<typeof PUBLIC_TOKENS>;
type PlayerPath = '/matchmaker/lobbies/find' | '/matchmaker/lobbies/create' | '/matchmaker/lobbies/join';

/** The answer to a request for a seat. */
export type Seat = Answer<'/matchmaker/lobbies/find', 'post'>;

type Captcha = NonNullable<RequestBody<'/matchmaker/lobbies/find', 'post'>['captcha']>;

/** A public token of each namespace, so that the page creates only one. */
const tokens = new Map<string, Promise<string>>();

/** Sends a request for a seat, as a player's client would: it solves a proof of work if it must. Throws Refused. */
export async function requestSeat<Path extends PlayerPath>(
  scope: Scope,
  path: Path,
  body: RequestBody<Path, 'post'> & object,
): Promise<Seat> {
  const token = await tokenFor(scope);
  try {
    return await callApiAs(token, 'POST', path, body);
  } catch (error) {
    const must_work = error instanceof Refused && error.code === 'CAPTCHA_CAPTCHA_REQUIRED';
    const captcha = must_work ? await proveWork(token) : undefined;
    if (!captcha) throw error;
    return await callApiAs(token, 'POST', path, { ...body, captcha });
  }
}

/**
 * Sends the request of a receipt once more. A receipt has neither the data for verification nor the configuration of a
 * lobby, so these are missing. Throws Refused.
 */
export async function repeatRequest(scope: Scope, receipt: Receipt): Promise<Seat> {
  const { kind, request } = receipt;
  const { game_modes = [], regions, tags, max_players, players, creates, wait_ms, publicity } = request;
  const wanted = { players, ...(tags && { tags }), ...(max_players !== undefined && { max_players }) };
  switch (kind) {
    case 'find':
      return await requestSeat(scope, '/matchmaker/lobbies/find', {
        ...wanted,
        game_modes,
        ...(regions && regions.length > 0 && { regions }),
        ...(creates === false && { prevent_auto_create_lobby: true }),
        ...(wait_ms !== undefined && { wait_ms }),
      });
    case 'join':
      return await requestSeat(scope, '/matchmaker/lobbies/join', { players, ...lobbyOf(receipt) });
    case 'create':
      return await requestSeat(scope, '/matchmaker/lobbies/create', {
        ...wanted,
        game_mode: game_modes[0] ?? '',
        ...(regions?.[0] !== undefined && { region: regions[0] }),
        ...(publicity && { publicity }),
      });
  }
}

/** Returns whether a receipt names all that its request needs. A join by a code may have found no lobby. */
export function isRepeatable(receipt: Receipt): boolean {
  return receipt.kind !== 'join' || lobbyOf(receipt) !== undefined;
}

/** Returns the lobby that a join named or, by its code, found. */
function lobbyOf({ request, outcome }: Receipt): { lobby_id: string } | undefined {
  const lobby_id = request.lobby_id ?? outcome.lobby_id;
  return lobby_id === undefined ? undefined : { lobby_id };
}

/** Returns a solved proof of work; undefined if the version has captchas of other kinds only. */
async function proveWork(token: string): Promise<Captcha | undefined> {
  try {
    return await solveWork(await callApiAs(token, 'GET', '/matchmaker/captcha/challenge'));
  } catch (error) {
    if (error instanceof Refused && error.code === 'CAPTCHA_WORK_NOT_USED') return undefined;
    throw error;
  }
}

/** Returns a public token of the namespace, which players' clients carry. */
export function tokenFor(scope: Scope): Promise<string> {
  const known = tokens.get(scope.namespace_id);
  if (known) return known;
  const made = post(PUBLIC_TOKENS, scope, {}).then(({ token }) => token);
  made.catch(() => tokens.delete(scope.namespace_id));
  tokens.set(scope.namespace_id, made);
  return made;
}

/** Returns the address of a seat's first port that has one. */
export function seatAddress({ ports }: Seat): string | undefined {
  return Object.values(ports)
    .map(toAddress)
    .find((address) => address !== undefined);
}
