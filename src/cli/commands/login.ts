import { EXIT, Failure } from '../../terminal/failure.ts';
import { terminal } from '../../terminal/terminal.ts';
import { ApiCaller, LONG_ATTEMPTS_MAX } from '../api-caller.ts';
import { environment } from '../environment.ts';
import { readGivenToken } from '../given-token.ts';
import { isLocalService, isSameService, readLocalTokens } from '../local-service.ts';
import { forgetLogins, type LoginGame, storeLogin } from '../logins.ts';
import { readProfiles, writeProfiles } from '../profiles.ts';
import { parseServiceUrl, refusalOf, Session, type SharedOptions, serviceUrlOf } from '../session.ts';

interface DeviceLink {
  device_link_token: string;
  device_link_url: string;
  /** Missing in answers of older services. */
  short_url?: string;
  code: string;
}

/** How long a person may take to complete the link. */
const LINK_WITHIN_MS = 15 * 60_000;

/**
 * Logs in to a service: with the token of the options or the environment, with the administrator's token of this machine's
 * service, or by a link that a person opens.
 */
export async function login(given_url: string | undefined, options: SharedOptions): Promise<void> {
  const { current, profiles } = readProfiles();
  const profile = profiles[current];
  if (given_url !== undefined && options.url !== undefined && given_url !== options.url) {
    throw new Failure(`Name one service: ${given_url} or ${options.url}.`, EXIT.wrong_use);
  }
  const url = parseServiceUrl(given_url ?? options.url ?? environment.url ?? profile?.url ?? environment.local_url);
  const given = await readGivenToken(options);
  // A redirect or a wrong address is found before the token is sent.
  await new ApiCaller(url, undefined).get('/cloud/bootstrap');
  const token = given?.token ?? (await findLocalToken(url)) ?? (await awaitLinkToken(url));
  const failure = await refusalOf(url, token);
  if (failure) {
    const words = `${url} refused the token${given?.source === 'environment' ? ' of MUSTER_TOKEN' : ''}`;
    const advice = given?.source === 'environment' ? 'Set another one, or unset it' : 'Use another token';
    const why = 'it is of another service, has expired or was revoked';
    throw new Failure(`${words}: ${why}. ${advice}.`, EXIT.not_logged_in, failure.refusal);
  }
  const game = await findGameOf(new ApiCaller(url, token));
  storeLogin(url, { token, ...(game && { game }) });
  // Another service's profile stays. As with "muster use URL", the new one has the address as its name.
  const name = profile === undefined || isSameService(profile.url, url) ? current : url;
  writeProfiles({ current: name, profiles: { ...profiles, [name]: profiles[name] ?? { url } } });
  const where = game ? `${url} for the game ${game.name_id}` : url;
  terminal.say(
    name === current ? `Logged in to ${where}.` : `Logged in to ${where}, and using it instead of ${current}.`,
  );
  if (options.json) terminal.json({ url, profile: name });
}

/** Returns the administrator's token of this machine's service; undefined for other services, and if it refuses every token. */
async function findLocalToken(url: string): Promise<string | undefined> {
  if (!isLocalService(url)) return undefined;
  for (const { token, file } of readLocalTokens()) {
    if ((await refusalOf(url, token)) === undefined) return token;
    terminal.say(`The token in ${file} is not of the service at ${url}.`);
  }
  return undefined;
}

/** Returns the game that a token is for; undefined for the token of a person. */
async function findGameOf(api: ApiCaller): Promise<LoginGame | undefined> {
  const { agent } = await api.get<{ agent: { game_cloud?: { game_id: string } } }>('/cloud/auth/inspect');
  const { game_cloud } = agent;
  if (!game_cloud) return undefined;
  const { games } = await api.get<{ games: LoginGame[] }>('/cloud/games');
  const game = games.find(({ game_id }) => game_id === game_cloud.game_id);
  return game && { game_id: game.game_id, name_id: game.name_id, display_name: game.display_name };
}

/** Forgets the logins to a service, and says which other token commands go on with. */
export function logout(options: SharedOptions): void {
  const url = serviceUrlOf(options);
  const was_logged_in = forgetLogins(url);
  if (options.json) {
    terminal.json({ url });
    return;
  }
  terminal.say(was_logged_in ? `Logged out of ${url}.` : `You were not logged in to ${url}.`);
  const other = otherToken(url);
  if (other !== undefined) terminal.say(`Commands here go on with the token of ${other}.`);
}

/** Returns where the commands of this folder have a token from without a login; undefined if they have none. */
function otherToken(url: string): string | undefined {
  if (environment.token !== undefined) return 'MUSTER_TOKEN';
  return isLocalService(url) ? readLocalTokens()[0]?.file : undefined;
}

/** Shows the service and the token's caller, and the current profile if it is of that service. */
export async function whoami(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  if (session.api.token === undefined) {
    throw new Failure(`You are not logged in to ${session.api.url}. ${session.api.login_advice}`, EXIT.not_logged_in);
  }
  const { agent } = await session.api.get<{ agent: Record<string, object> }>('/cloud/auth/inspect');
  const { current, profiles } = readProfiles();
  const { url } = session.api;
  const own =
    profiles[current] && isSameService(profiles[current].url, url) ? { profile: current, ...profiles[current] } : {};
  const answer = { url, agent, ...own };
  session.show(answer, (output) => {
    const [kind = 'unknown', caller = {}] = Object.entries(agent)[0] ?? [];
    output.line(`${url} as ${kind} ${Object.values(caller).join(' ')}`);
  });
}

/** Chooses a profile: the service, game and namespace of commands without options. Creates or changes it by options. */
export async function use(name: string, options: SharedOptions): Promise<void> {
  const { url, token, game, namespace, json = false } = options;
  if (token !== undefined) {
    throw new Failure(
      'A profile has no token: leave out --token, and log in afterwards (muster login).',
      EXIT.wrong_use,
    );
  }
  const { profiles } = readProfiles();
  const before = profiles[name];
  const chosen = url ?? before?.url ?? (URL.canParse(name) ? name : undefined);
  if (chosen === undefined) {
    const known = Object.keys(profiles).join(', ');
    const others = known === '' ? '' : ` There are: ${known}.`;
    throw new Failure(
      `There is no profile "${name}".${others} Create it: muster use ${name} --url ADDRESS`,
      EXIT.not_found,
    );
  }
  const address = parseServiceUrl(chosen);
  // The game and the namespace of a profile are of its own service.
  const kept = before?.url === address ? before : {};
  const profile = { ...kept, url: address, ...(game && { game }), ...(namespace && { namespace }) };
  writeProfiles({ current: name, profiles: { ...profiles, [name]: profile } });
  if (json) terminal.json({ profile: name, ...profile });
  else {
    const parts = [profile.game && `game ${profile.game}`, profile.namespace && `namespace ${profile.namespace}`];
    terminal.say(`Using ${name}: ${[profile.url, ...parts].filter(Boolean).join(', ')}.`);
  }
}

/** Shows a link, and returns the token once a person has completed it. */
async function awaitLinkToken(url: string): Promise<string> {
  if (!process.stdin.isTTY) {
    const advice = `pass one by "muster login ${url} --token -", or set MUSTER_TOKEN`;
    throw new Failure(`Without a terminal, a login needs a token: ${advice}.`, EXIT.wrong_use);
  }
  const api = new ApiCaller(url, undefined);
  const { device_link_token, device_link_url, short_url, code } = await api.call<DeviceLink>(
    'POST',
    '/cloud/devices/links',
  );
  terminal.say(
    `Open this link in a browser, check that it shows the code ${code}, and choose a game:\n\n  ${short_url ?? device_link_url}\n`,
  );
  const deadline = performance.now() + LINK_WITHIN_MS;
  for (let index: string | undefined; performance.now() < deadline; ) {
    const query = { device_link_token, watch_index: index };
    const call = { query, attempts_max: LONG_ATTEMPTS_MAX };
    const link = await api.get<{ cloud_token?: string; watch: { index: string } }>('/cloud/devices/links', call);
    if (link.cloud_token) return link.cloud_token;
    index = link.watch.index;
  }
  throw new Failure('The link was not completed in time. Run the command again.', EXIT.timed_out);
}
