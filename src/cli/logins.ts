import { damaged, readConfigFile, writeConfigFile } from './config-directory.ts';
import { isRecord } from './is-record.ts';
import { isSameService } from './local-service.ts';

/** A game, by all that names it. */
export interface LoginGame {
  game_id: string;
  name_id: string;
  display_name: string;
}

/** A token that a login got. */
interface Login {
  token: string;
  /** The game that the token is for. Missing for the token of a person. */
  game?: LoginGame;
}

/** The logins to each service by its address, the latest first. Older releases kept one token for each address. */
type Logins = Record<string, string | Login[]>;

const FILE = 'credentials.json';

/**
 * Returns the token of a login to a service; undefined before a login. If a game is named, it is the token for that game or of
 * a person, as long as there is one; otherwise it is that of the latest login.
 */
export function findLogin(url: string, game: string | undefined): string | undefined {
  const logins = listLogins(read(), url);
  const isOfGame = (login: Login) => login.game !== undefined && Object.values(login.game).includes(game ?? '');
  const chosen = logins.find(isOfGame) ?? (game === undefined ? undefined : logins.find((login) => !login.game));
  return (chosen ?? logins[0])?.token;
}

/** Stores a login. That of a person replaces all others to the service, and that for a game the one for the same game. */
export function storeLogin(url: string, login: Login): void {
  const logins = read();
  const others = login.game
    ? listLogins(logins, url).filter((other) => other.game?.game_id !== login.game?.game_id)
    : [];
  writeConfigFile(FILE, { ...withoutLogins(logins, url), [url]: [login, ...others] });
}

/** Forgets all logins to a service. Returns whether there was one. */
export function forgetLogins(url: string): boolean {
  const logins = read();
  if (listLogins(logins, url).length === 0) return false;
  writeConfigFile(FILE, withoutLogins(logins, url));
  return true;
}

function read(): Logins {
  const logins = readConfigFile(FILE);
  if (!Object.values(logins).every(isStored)) throw damaged(FILE);
  return logins as Logins;
}

function isStored(value: unknown): boolean {
  const isLogin = (login: unknown) => isRecord(login) && typeof login.token === 'string';
  return typeof value === 'string' || (Array.isArray(value) && value.every(isLogin));
}

function listLogins(logins: Logins, url: string): Login[] {
  const stored = Object.entries(logins).filter(([address]) => isSameService(address, url));
  return stored.flatMap(([, value]) => (typeof value === 'string' ? [{ token: value }] : value));
}

function withoutLogins(logins: Logins, url: string): Logins {
  return Object.fromEntries(Object.entries(logins).filter(([address]) => !isSameService(address, url)));
}
