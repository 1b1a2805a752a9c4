import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../support/api.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { openInspector } from '../support/inspector.ts';
import { fillPath } from '../support/operations.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { type Case, listCases, listOperations, listReadFields, makeGood, type Operation } from './limits-cases.ts';
import { type GoodRequests, makeGoodRequests, type Sent } from './limits-requests.ts';
import { RULE_ROWS } from './limits-rules.ts';
import { findUnlimited, putValue } from './limits-shapes.ts';
import { openSnapshots, type Snapshots } from './limits-snapshots.ts';
import { listVersionRows } from './limits-version-rules.ts';

const AT_ONCE_MAX = 8;
const TRIED_EVERY = 3;
const seed = Number(process.env.MUSTER_TEST_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);
const first_case = seed % TRIED_EVERY;

let opened: TestService;
let snapshots: Snapshots;
let good: GoodRequests;
let operations: Operation[];
beforeAll(async () => {
  opened = await openTestService();
  snapshots = openSnapshots(opened);
  good = await makeGoodRequests(opened);
  operations = await listOperations(opened.api);
  await using inspector = openInspector(opened);
  await inspector.waitForPlayerCounts();
}, 300_000);
afterAll(async () => {
  await snapshots?.[Symbol.asyncDispose]();
  await opened?.[Symbol.asyncDispose]();
}, 300_000);

/** Lists an operation's good and bad cases; every third, from a random one on, unless MUSTER_TEST_LONG asks for all. */
function casesOf(operation: Operation): Case[] {
  const cases = listCases(operation, () => makeGood(operation, good));
  return IS_FULL_LENGTH ? cases : cases.filter((_, index) => index % TRIED_EVERY === first_case);
}

async function send({ method, path: template }: Operation, sent: Sent): Promise<Answer> {
  const { path, query = {}, ...request } = sent;
  const search = new URLSearchParams(query).toString();
  const url = fillPath({ path: template }, path);
  return await opened.api.call(method, search === '' ? url : `${url}?${search}`, request);
}

/** Sends cases, and describes those whose answer has a problem. */
async function findWrong(
  operation: Operation,
  cases: Case[],
  problemOf: (one: Case, answer: Answer) => string | undefined,
): Promise<string[]> {
  const wrong: string[] = [];
  const waiting = cases.values();
  const work = async () => {
    for (const one of waiting) {
      const answer = await send(operation, one.sent);
      const problem = problemOf(one, answer);
      if (problem === undefined) continue;
      const { query, body } = one.sent;
      const shown = `${JSON.stringify(query) ?? ''} ${String(body).slice(0, 300)}`;
      wrong.push(`${operation.name} ${one.place.join('.')} ${shown}: ${problem}: ${describeAnswer(answer)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, work));
  return wrong;
}

const describeAnswer = ({ status, body }: Answer): string => `${status} ${JSON.stringify(body).slice(0, 300)}`;

/** Returns what is wrong with the answer to a bad request: it must be a refusal that names the field. */
function refusalProblem({ place, code }: Case, { status, body }: Answer): string | undefined {
  if (status !== (code === 'API_BODY_TOO_LARGE' ? 413 : 400)) return 'not refused';
  if (body.code !== code) return `not refused as ${code}`;
  if (place.length > 0 && !body.message.includes(`"${place.join('.')}`)) return 'the place is not named';
  const [{ path = [] } = {}] = body.metadata?.errors ?? [];
  if (code === 'API_BAD_BODY' && place.some((name, index) => path[index] !== name)) return 'another place is named';
  return undefined;
}

/** Returns what is wrong with the answer to a request of the right shape, which other rules may refuse. */
function acceptanceProblem(_: Case, { status, body }: Answer): string | undefined {
  if (status >= 500) return 'our fault';
  // One of these is required, and the answer says so.
  if (String(body.message).includes('expected "lobby_id", or "code" instead')) return undefined;
  return /^API_(BAD_BODY|BAD_QUERY_PARAMETER|BODY_TOO_LARGE)$/.test(body.code) ? 'refused' : undefined;
}

describe('limits', () => {
  test('every field that is read has a limit', () => {
    const unlimited = operations.flatMap((operation) =>
      listReadFields(operation, makeGood(operation, good)).flatMap((field) => {
        const lack = findUnlimited(field);
        return lack === undefined ? [] : [`${operation.name} ${field.path.join('.')}: ${lack}`];
      }),
    );
    expect(unlimited).toEqual([]);
    expect(operations.length).toBeGreaterThan(80);
  });

  test('a value beyond a limit or of another type is refused by name, and nothing is written', async () => {
    const wrong: string[] = [];
    let [case_count, field_count] = [0, 0];
    for (const operation of operations) {
      const cases = casesOf(operation);
      case_count += cases.length;
      field_count += listReadFields(operation, makeGood(operation, good)).filter(({ path }) => path.length > 0).length;
      const before = await snapshots.take();
      wrong.push(
        ...(await findWrong(
          operation,
          cases.filter(({ is_good }) => !is_good),
          refusalProblem,
        )),
      );
      const after = await snapshots.take();
      wrong.push(...changes(before, after).map((table) => `${operation.name} wrote ${table}`));
    }
    console.log(
      `seed ${seed} (MUSTER_TEST_SEED): ${case_count} cases over ${field_count} fields of ${operations.length} operations`,
    );
    expect(wrong.slice(0, 20)).toEqual([]);
  }, 300_000);

  test('a value beyond a limit of a rule is refused by name, and nothing is written', async () => {
    const before = await snapshots.take();
    const wrong: string[] = [];
    for (const { operation, place, bad } of RULE_ROWS) {
      for (const [value, message] of bad) {
        const answer = await sendWith(operation, place, value);
        if (answer.status !== 400 || !answer.body.message.includes(message))
          wrong.push(`${message}: ${describeAnswer(answer)}`);
      }
    }
    for (const { place, bad } of listVersionRows(good.docker)) {
      for (const [value, path] of bad) {
        const validated = await sendWith(`${VERSIONS}/validate`, place, value);
        if (!pathsIn(validated).includes(path)) wrong.push(`${path}: ${describeAnswer(validated)}`);
        const created = await sendWith(VERSIONS, place, value);
        if (created.status !== 400 || !isRefused(created, path)) wrong.push(`${path}: ${describeAnswer(created)}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(changes(before, await snapshots.take())).toEqual([]);
  }, 300_000);

  test('a value at the limit of a rule is accepted', async () => {
    const wrong: string[] = [];
    for (const { operation, place, good: values } of RULE_ROWS) {
      for (const value of values) {
        const answer = await sendWith(operation, place, value);
        if (answer.status !== 200) wrong.push(`${operation} ${place.join('.')}: ${describeAnswer(answer)}`);
      }
    }
    for (const { place, good: values } of listVersionRows(good.docker)) {
      for (const value of values) {
        const validated = await sendWith(`${VERSIONS}/validate`, place, value);
        if (pathsIn(validated).length > 0) wrong.push(`${place.join('.')}: ${describeAnswer(validated)}`);
        const created = await sendWith(VERSIONS, place, value);
        if (created.status !== 200) wrong.push(`${place.join('.')}: ${describeAnswer(created)}`);
      }
    }
    expect(wrong).toEqual([]);
  }, 300_000);

  test('the good requests that all cases start from succeed', async () => {
    const before = await snapshots.take();
    const wrong: string[] = [];
    for (const operation of operations.filter(hasFields)) {
      const once = await good.onceOf[operation.name.replace(' /v1/', ' /matchmaker/')]?.();
      const sent = makeGood(operation, good);
      const answer = await send(operation, { ...sent, ...once, path: { ...sent.path, ...once?.path } });
      if (answer.status !== 200) wrong.push(`${operation.name}: ${describeAnswer(answer)}`);
    }
    expect(wrong).toEqual([]);
    // This shows that the snapshots above would have seen a change.
    expect(changes(before, await snapshots.take()).length).toBeGreaterThan(10);
  }, 300_000);

  test('a value just within a limit is not refused for it', async () => {
    const wrong: string[] = [];
    for (const operation of operations.filter(hasFields)) {
      wrong.push(
        ...(await findWrong(
          operation,
          casesOf(operation).filter(({ is_good }) => is_good),
          acceptanceProblem,
        )),
      );
    }
    expect(wrong.slice(0, 20)).toEqual([]);
  }, 300_000);
});

const VERSIONS = 'POST /cloud/games/{game_id}/versions';

/** Sends an operation's good request with another value at a path of its body. */
async function sendWith(name: string, place: string[], value: unknown): Promise<Answer> {
  const operation = operations.find((one) => one.name === name);
  if (!operation?.body) throw new Error(`there is no operation ${name} with a body`);
  const sent = makeGood(operation, good);
  return await send(operation, { ...sent, body: JSON.stringify(putValue(operation.body, sent.body, place, value)) });
}

/** Returns the paths of the errors that a validation reports. */
function pathsIn({ status, body }: Answer): string[] {
  if (status !== 200) return [`${status} ${body.code}`];
  return body.errors.map(({ path }: { path: string[] }) => path.join('.'));
}

/** Returns whether a version is refused for a path, with advice. */
function isRefused({ body }: Answer, path: string): boolean {
  return body.code === 'VALIDATION_ERROR' && body.message.includes(`${path} (`);
}

/** Returns the tables that differ. */
function changes(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys(after).filter((table) => before[table] !== after[table]);
}

/** Returns whether the query or the body has fields to try. */
function hasFields({ query, body }: Operation): boolean {
  return query !== undefined || Object.keys(body?.properties ?? {}).length > 0;
}
