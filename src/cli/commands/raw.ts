import { parseExactly } from '../../shared/exact-json.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { LONG_ATTEMPTS_MAX, type Method } from '../api-caller.ts';
import { Session, type SharedOptions } from '../session.ts';

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] satisfies Method[];

interface RawOptions extends SharedOptions {
  data?: string;
}

/**
 * Sends any request of the API, and writes its answer: JSON on one line, any other text as it is. Numbers stay as written in
 * both.
 */
export async function callApi(method: string, path: string, options: RawOptions): Promise<void> {
  const session = await Session.open(options);
  const upper = method.toUpperCase();
  if (!METHODS.includes(upper)) throw new Failure(`"${method}" is not one of ${METHODS.join(', ')}.`, EXIT.wrong_use);
  if (upper === 'GET' && options.data !== undefined)
    throw new Failure('A GET has no body: leave out --data.', EXIT.wrong_use);
  const body =
    options.data === undefined ? undefined : readJson(options.data === '-' ? await Bun.stdin.text() : options.data);
  writeBody(session, await session.api.callForText(upper as Method, rooted(path), { body }));
}

function writeBody({ is_json, output }: Session, text: string): void {
  const value = parseJson(text);
  if (value !== undefined) output.json(value);
  else if (is_json) output.json({ text });
  else if (text !== '') for (const line of text.trimEnd().split('\n')) output.line(line);
}

/** Writes the body of a path now, and again after every change, one a line. */
export async function watchPath(path: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  for (let index: string | undefined; ; ) {
    const text = await session.api.callForText('GET', rooted(path), {
      query: { watch_index: index },
      attempts_max: index === undefined ? undefined : LONG_ATTEMPTS_MAX,
    });
    const answer = parseJson(text) as { watch?: { index: string } } | null | undefined;
    if (!answer?.watch)
      throw new Failure(
        `${path} cannot be watched: its answer has no "watch". Read it: ${session.commandAt(`api GET ${path}`)}`,
        EXIT.wrong_use,
      );
    if (answer.watch.index !== index) session.output.json(answer);
    ({ index } = answer.watch);
  }
}

function rooted(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

function readJson(text: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    throw new Failure(`--data is not JSON: ${error instanceof Error ? error.message : error}.`, EXIT.wrong_use);
  }
}

/** Returns the value of a JSON text; undefined for any other text. */
function parseJson(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
