import { EXIT, Failure } from '../terminal/failure.ts';
import { environment } from './environment.ts';
import type { SharedOptions } from './session.ts';

/** Where a command has its token from. */
export type TokenSource = 'option' | 'environment' | 'login' | 'data directory';

/** A token of a command. */
export interface GivenToken {
  token: string;
  source: TokenSource;
}

/** What a header of HTTP takes, which every token fits in. */
const VISIBLE = /^[!-~]+$/;

/** Returns the token of `--token` or MUSTER_TOKEN; undefined if neither is given. Throws a Failure for one that cannot be sent. */
export async function readGivenToken(options: SharedOptions): Promise<GivenToken | undefined> {
  const option = await readTokenOption(options);
  if (option !== undefined) return { token: parseToken(option, '--token'), source: 'option' };
  const { token } = environment;
  return token === undefined ? undefined : { token: parseToken(token, 'MUSTER_TOKEN'), source: 'environment' };
}

/** Returns the token of `--token`, which `-` reads from standard input. Throws a Failure if nothing is there. */
async function readTokenOption({ token }: SharedOptions): Promise<string | undefined> {
  if (token !== '-') return token;
  const read = (await Bun.stdin.text()).trim();
  if (read === '')
    throw new Failure('There is no token on standard input, from which --token - reads it.', EXIT.wrong_use);
  return read;
}

function parseToken(text: string, name: string): string {
  const token = text.trim();
  if (VISIBLE.test(token)) return token;
  const problem = 'has a line break, a blank or another character that no token has';
  throw new Failure(`The token of ${name} ${problem}: copy it again, as one line.`, EXIT.wrong_use);
}

/** Returns what to do if a service refuses the token of a command, or needs one: a sentence. */
export function loginAdvice(url: string, source: TokenSource | undefined): string {
  const login = `muster login ${url}`;
  if (source === 'option') return 'This is the token of --token: pass another one.';
  // A login takes the token of the variable, too.
  if (source === 'environment')
    return `This is the token of MUSTER_TOKEN: replace it, or unset it and log in: ${login}`;
  return `Log in: ${login}`;
}

/** Returns how to use another token, such as `a token of it`: the end of a sentence. */
export function otherTokenAdvice(what: string, url: string, source: TokenSource | undefined): string {
  if (source === 'option') return `pass ${what} with --token`;
  if (source === 'environment') return `set MUSTER_TOKEN to ${what}`;
  return `log in for ${what}: muster login ${url}`;
}
