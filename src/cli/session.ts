import { EXIT, Failure } from '../terminal/failure.ts';
import { type Output, terminal } from '../terminal/terminal.ts';
import { ApiCaller } from './api-caller.ts';
import { environment } from './environment.ts';
import { type GivenToken, loginAdvice, otherTokenAdvice, readGivenToken, type TokenSource } from './given-token.ts';
import { isLocalService, isSameService, readLocalTokens } from './local-service.ts';
import { findLogin } from './logins.ts';
import { readProfiles } from './profiles.ts';
import { readGameName } from './project/project-file.ts';

/** Options of every command that talks to a service. */
export interface SharedOptions {
  url?: string;
  token?: string;
  game?: string;
  namespace?: string;
  json?: boolean;
}

/** A game as the API lists it, as far as commands use it. */
export interface Game {
  game_id: string;
  name_id: string;
  display_name: string;
  namespaces: { namespace_id: string; name_id: string; display_name: string; version_id: string; create_ts: string }[];
  versions: { version_id: string; display_name: string; create_ts: string }[];
  available_regions: { region_id: string; region_name_id: string; region_display_name: string }[];
}

/** A namespace, with its game. */
export interface Scope {
  game: Game;
  namespace: Game['namespaces'][number];
}

/** What a command takes if no option names it. */
interface Defaults {
  /** May be no address. */
  url: string;
  game: string | undefined;
  namespace: string;
}

/** What a session is opened with, besides the options of its command. */
interface SessionOptions {
  /** Ends its requests. */
  stopping?: AbortSignal;
  /** The token to use, whatever the options and the environment name. */
  given_token?: GivenToken;
}

const NAMESPACE_DEFAULT = 'prod';

/** Returns the game with this id or name id; if there is none, the games with this display name, which may be several. */
function findMatching<Listed extends Pick<Game, 'game_id' | 'name_id' | 'display_name'>>(
  games: Listed[],
  wanted: string,
): Listed[] {
  const exact = games.find(({ game_id, name_id }) => game_id === wanted || name_id === wanted);
  return exact ? [exact] : games.filter(({ display_name }) => display_name === wanted);
}

/** What a command works with: the service, the caller's token, and where its output goes. */
export class Session {
  readonly api: ApiCaller;
  /** Where the token came from; undefined without one. */
  readonly token_source: TokenSource | undefined;
  readonly output: Output = terminal;
  readonly is_json: boolean;
  readonly #game: string | undefined;
  readonly #namespace: string;
  readonly #defaults: Defaults;

  private constructor(
    { api, token_source }: Pick<Session, 'api' | 'token_source'>,
    { game, namespace, json = false }: SharedOptions & { namespace: string },
    defaults: Defaults,
  ) {
    this.api = api;
    this.token_source = token_source;
    this.is_json = json;
    this.#game = game;
    this.#namespace = namespace;
    this.#defaults = defaults;
  }

  /**
   * Opens a session from options, the environment, the current profile, or the service of this machine, in this order. The
   * game may also come from the muster.yaml of the current directory, before the profile's.
   */
  static async open(options: SharedOptions, { stopping, given_token }: SessionOptions = {}): Promise<Session> {
    const url = serviceUrlOf(options);
    const { current, profiles } = readProfiles();
    const profile = profiles[current];
    // The profile names a game and a namespace of its own service only.
    const own = profile && isSameService(profile.url, url) ? profile : undefined;
    const default_game = environment.game ?? readGameName(process.cwd()) ?? own?.game;
    const default_namespace = environment.namespace ?? own?.namespace ?? NAMESPACE_DEFAULT;
    const game = options.game ?? default_game;
    const found = given_token ?? (await readGivenToken(options)) ?? findToken(url, game);
    const login_advice = loginAdvice(url, found?.source);
    return new Session(
      { api: new ApiCaller(url, found?.token, { stopping, login_advice }), token_source: found?.source },
      { ...options, game, namespace: options.namespace ?? default_namespace },
      { url: defaultUrl(), game: default_game, namespace: default_namespace },
    );
  }

  /** Returns a session for cleaning up after a stop: the stop does not end its requests. */
  withoutStop(): Session {
    const { url, token, login_advice } = this.api;
    const given = { ...(this.#game && { game: this.#game }), namespace: this.#namespace };
    const { token_source } = this;
    const api = new ApiCaller(url, token, { login_advice });
    return new Session({ api, token_source }, { ...given, json: this.is_json }, this.#defaults);
  }

  /** Returns a command for an advice, with the options that it needs to act on this service as this command does. */
  commandAt(words: string): string {
    const is_default = withoutLastSlash(this.#defaults.url) === this.api.url;
    const at_url = is_default ? '' : ` --url ${this.api.url}`;
    const with_token = this.token_source === 'option' ? ' --token -' : '';
    return `muster ${words}${at_url}${with_token}`;
  }

  /** Returns a command for an advice, with the options that it needs to act on a game of this service. */
  commandFor({ name_id }: Pick<Game, 'name_id'>, words: string): string {
    return this.commandAt(this.#defaults.game === name_id ? words : `${words} --game ${name_id}`);
  }

  /** Returns a command for an advice, with the options that it needs to act on a namespace of this service. */
  commandIn({ game, namespace }: Scope, words: string): string {
    const { name_id } = namespace;
    return this.commandFor(game, this.#defaults.namespace === name_id ? words : `${words} --namespace ${name_id}`);
  }

  /** The name or id of the game, if one was given. */
  get game_name(): string | undefined {
    return this.#game;
  }

  /** The name or id of the namespace. */
  get namespace_name(): string {
    return this.#namespace;
  }

  /** Returns the given game; without one, the only game of the caller. */
  async game(): Promise<Game> {
    const { games } = await this.api.get<{ games: Pick<Game, 'game_id' | 'name_id' | 'display_name'>[] }>(
      '/cloud/games',
    );
    const names = games.map(({ name_id }) => name_id).join(', ');
    const wanted = this.#game;
    const [first, ...others] = wanted === undefined ? games : findMatching(games, wanted);
    if (!first && wanted !== undefined) {
      const other = await this.describeTokenOfGame(wanted, names);
      throw new Failure(other ?? `There is no game "${wanted}"; there are: ${names || 'none'}.`, EXIT.not_found);
    }
    if (!first) {
      throw new Failure(`You have no game yet. Create one in its folder: ${this.commandAt('deploy')}`, EXIT.not_found);
    }
    if (others.length > 0) throw new Failure(`Say which game, with --game: ${names}.`, EXIT.wrong_use);
    return (await this.api.get<{ game: Game }>(`/cloud/games/${first.game_id}`)).game;
  }

  /** Returns a sentence if the token is of one game, and so cannot see another one, which may exist. */
  async describeTokenOfGame(wanted: string, own: string): Promise<string | undefined> {
    const { agent } = await this.api.get<{ agent: object }>('/cloud/auth/inspect');
    if (!('game_cloud' in agent)) return undefined;
    const advice = otherTokenAdvice('a token of it', this.api.url, this.token_source);
    return `Your token is of the game ${own}, and cannot be used for ${wanted}. If ${wanted} exists, ${advice}`;
  }

  /** Returns the given game and namespace, `prod` by default. */
  async scope(): Promise<Scope> {
    const game = await this.game();
    const wanted = this.namespace_name;
    const namespace = game.namespaces.find((one) => [one.namespace_id, one.name_id].includes(wanted));
    if (!namespace) {
      const names = game.namespaces.map(({ name_id }) => name_id).join(', ');
      const create = this.commandAt(`api POST /cloud/games/${game.game_id}/namespaces -d JSON`);
      throw new Failure(
        `The game "${game.name_id}" has no namespace "${wanted}"; it has: ${names}. To create others: ${create}`,
        EXIT.not_found,
      );
    }
    return { game, namespace };
  }

  /** Writes an answer as JSON with `--json`, otherwise by `show`. */
  show(answer: unknown, show: (output: Output) => void): void {
    if (this.is_json) this.output.json(answer);
    else show(this.output);
  }
}

/** Returns the failure with which a service refuses a token, without advice; undefined if it accepts the token. */
export async function refusalOf(url: string, token: string): Promise<Failure | undefined> {
  try {
    await new ApiCaller(url, token, { login_advice: '' }).get('/cloud/auth/inspect');
    return undefined;
  } catch (error) {
    if (error instanceof Failure && error.exit_code === EXIT.not_logged_in) return error;
    throw error;
  }
}

/** Returns the address of the service that a command acts on. Throws Failure. */
export function serviceUrlOf({ url }: Pick<SharedOptions, 'url'>): string {
  return parseServiceUrl(url ?? defaultUrl());
}

/** Returns the address that the environment or the current profile names, as it is written there. */
function defaultUrl(): string {
  const { current, profiles } = readProfiles();
  return environment.url ?? profiles[current]?.url ?? environment.local_url;
}

/** Returns the address of a service without its last slash. Throws Failure. */
export function parseServiceUrl(text: string): string {
  // Without "http://", URL takes the host of "localhost:8080" for a protocol.
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new Failure(`"${text}" is not an address such as https://play.example.com.`, EXIT.wrong_use);
  }
  return withoutLastSlash(text);
}

function withoutLastSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

/**
 * Returns the options of a command, with the namespace that its argument gives, if any. Throws Failure if `--namespace` gives
 * another one.
 */
export function withNamespace<Options extends SharedOptions>(options: Options, given: string | undefined): Options {
  const { namespace } = options;
  if (given === undefined) return options;
  if (namespace === undefined || namespace === given) return { ...options, namespace: given };
  throw new Failure(`Name one namespace: ${given} or ${namespace}.`, EXIT.wrong_use);
}

/** Returns the token of a login to a service, or that in a data directory of this machine's service. */
function findToken(url: string, game: string | undefined): GivenToken | undefined {
  const login = findLogin(url, game);
  if (login !== undefined) return { token: login, source: 'login' };
  const local = isLocalService(url) ? readLocalTokens()[0]?.token : undefined;
  return local === undefined ? undefined : { token: local, source: 'data directory' };
}
