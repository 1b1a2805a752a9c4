import type { Caller } from '../tokens/caller.ts';
import type { Exchange } from './exchange.ts';
import type { RequestDeadline } from './request-deadline.ts';

/** What every route gets of a request. */
export interface RouteInput<Caller, Parameters, Query> {
  /** Of one of the kinds that the route allows; undefined if it allows anyone. */
  caller: Caller;
  /** From the path: UUIDs in lower case, unless the route says otherwise. */
  params: Parameters;
  query: Query;
}

/** The input of any route. */
export type AnyInput = RouteInput<Caller | undefined, Record<string, string>, object>;

/** Details of a change for the audit log, by name. */
export type ChangeDetails = Record<string, string | number | boolean>;

/** What a change by one game did to another game. The other game sees it in its audit log, without its caller. */
export interface EffectOnOther {
  operation: string;
  game_id: string;
  namespace_id: string;
  details: ChangeDetails;
}

const NO_DETAILS: ChangeDetails = {};
const NO_EFFECTS: readonly EffectOnOther[] = [];

interface TextAndBody<Body> {
  text: string;
  body: Body;
}

/** What a handler gets: an authorized request with its body. */
export class Call<Caller, Parameters, Query, Body> implements RouteInput<Caller, Parameters, Query> {
  readonly caller: Caller;
  readonly params: Parameters;
  readonly query: Query;
  /** Has the route's shape. Members that the shape does not name are ignored. */
  readonly body: Body;
  /** The unparsed body. Empty on a route without a body, and on one that takes a stream. */
  readonly text: string;
  readonly ray_id: string;
  /** For headers, and for bodies that are not JSON. */
  readonly request: Request;
  /** When the request ends without its answer. */
  readonly deadline: RequestDeadline;
  readonly #exchange: Exchange;
  #details: ChangeDetails = NO_DETAILS;
  #effects = NO_EFFECTS;

  constructor(
    exchange: Exchange,
    { caller, params, query }: RouteInput<Caller, Parameters, Query>,
    { text, body }: TextAndBody<Body>,
  ) {
    this.caller = caller;
    this.params = params;
    this.query = query;
    this.body = body;
    this.text = text;
    this.ray_id = exchange.ray_id;
    this.request = exchange.request;
    this.deadline = exchange.deadline;
    this.#exchange = exchange;
  }

  /** Adds details to the entry of the audit log that neither the request nor its answer has. Never anything secret. */
  recordDetails(details: ChangeDetails): void {
    this.#details = { ...this.#details, ...details };
  }

  get recorded_details(): Readonly<ChangeDetails> {
    return this.#details;
  }

  /** Adds an entry to the audit log of another game. The entry does not name the caller. */
  recordEffect(effect: EffectOnOther): void {
    this.#effects = [...this.#effects, effect];
  }

  get recorded_effects(): readonly EffectOnOther[] {
    return this.#effects;
  }

  /** The client's address. */
  get address(): string {
    return this.#exchange.address;
  }

  /** Returns the header Origin; undefined if no page sent the request. */
  readOrigin(): string | undefined {
    return this.request.headers.get('origin') ?? undefined;
  }

  /** Returns the header User-Agent; null if there is none. */
  readUserAgent(): string | null {
    return this.request.headers.get('user-agent');
  }
}

/** A call of any handler. */
export type AnyCall = Call<Caller | undefined, Record<string, string>, object, unknown>;
