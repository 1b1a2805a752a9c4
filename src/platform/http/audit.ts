import type { TSchema } from '@sinclair/typebox';
import type { CallerOf } from '../tokens/caller.ts';
import { isOfKind } from '../tokens/tokens.ts';
import type { AnyCall, ChangeDetails, EffectOnOther } from './call.ts';
import { paramNamesOf } from './path.ts';
import type { HandledRoute } from './route.ts';
import { isUuid } from './shapes.ts';

/** The kinds of callers whose changes are recorded: people, and the tools and back ends of developers. */
const AUDITED_KINDS = ['identity', 'cloud', 'service'] as const;
const TEXT_LENGTH_MAX = 256;
/** Parameters that name the scope of a change. An entry has them beside its details. */
const OF_SCOPE = ['game_id', 'namespace_id', 'environment_id'];

export type AuditedCaller = CallerOf<(typeof AUDITED_KINDS)[number]>;

/** A request that may change something. */
export interface RequestedChange {
  /** The ray id of the request. */
  entry_id: string;
  operation: string;
  caller: AuditedCaller;
  address: string;
  user_agent: string | null;
  /** The game, and the namespace, that the caller was authorized for. */
  game_id: string | undefined;
  namespace_id: string | undefined;
  /** What the change is about: ids, and what else its route names. */
  details: ChangeDetails;
}

/** Records who changed what. */
export interface Audit {
  /**
   * Records a change before `act` begins it, so that there is no change without its entry, and records how it ended.
   * Returns what `act` returns. `toDetails` returns what the change was about, once it has its answer, and `toEffects`
   * what it did to other games.
   */
  record<Answer>(
    change: RequestedChange,
    act: () => Promise<Answer>,
    toDetails: (answer: Answer) => ChangeDetails,
    toEffects?: () => readonly EffectOnOther[],
  ): Promise<Answer>;
}

/**
 * Creates the function that calls a route's handler, and records the changes of people, and of the tools and back ends of
 * developers. No other code records changes.
 */
export function createRecorder(route: HandledRoute, audit: Audit): (call: AnyCall) => Promise<unknown> {
  const { operation, access, allow, free_params } = route;
  const is_recorded = isRecorded(route);
  if (!is_recorded) return (call) => route.handle(call);
  const isNamed = (name: string) => route.recorded.includes(name) || name.endsWith('_id');
  const params = paramNamesOf(route.path)
    .filter((name) => isNamed(name) || !free_params.includes(name))
    .filter((name) => !access || !OF_SCOPE.includes(name));
  const members = membersOf(route.body).filter(isNamed);
  const answered = membersOf(route.response).filter(isNamed);

  return (call) => {
    const { caller } = call;
    if (!caller || allow === 'anyone' || !isOfKind(caller, AUDITED_KINDS)) return route.handle(call);
    const details = { ...pick(call.body, members), ...pick(call.params, params) };
    const { game_id, namespace_id, environment_id = namespace_id } = call.params;
    const change: RequestedChange = {
      entry_id: call.ray_id,
      operation,
      caller,
      address: call.address,
      user_agent: call.readUserAgent()?.slice(0, TEXT_LENGTH_MAX) ?? null,
      game_id: access ? game_id : undefined,
      namespace_id: access ? environment_id : undefined,
      details,
    };
    return audit.record(
      change,
      () => route.handle(call),
      (answer) => ({ ...pick(answer, answered), ...details, ...call.recorded_details }),
      () => call.recorded_effects,
    );
  };
}

/** Returns whether a route's changes are recorded. */
export function isRecorded({ is_change, allow }: Pick<HandledRoute, 'is_change' | 'allow'>): boolean {
  return is_change && allow !== 'anyone' && allow.some((kind) => AUDITED_KINDS.some((audited) => audited === kind));
}

function membersOf(shape: TSchema | undefined): string[] {
  return Object.keys(shape?.properties ?? {});
}

/**
 * Returns the members with these names: texts, which are cut, numbers and booleans, and of an object only its id. Leaves out
 * a member with a name that ends in `_id` if it is no UUID.
 */
function pick(source: unknown, names: string[]): ChangeDetails {
  if (typeof source !== 'object' || source === null || source instanceof Response) return {};
  const members = new Map<string, unknown>(Object.entries(source));
  const picked: ChangeDetails = {};
  for (const name of names) {
    const value = members.get(name);
    if (typeof value === 'string' && (!name.endsWith('_id') || isUuid(value))) {
      picked[name] = name.endsWith('_id') ? value.toLowerCase() : cutText(value);
    } else if (typeof value === 'number' || typeof value === 'boolean') {
      picked[name] = value;
    } else if (typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string') {
      picked[`${name}_id`] = value.id;
    }
  }
  return picked;
}

/** Returns the beginning of a text. PostgreSQL stores no half of a character in JSON. */
function cutText(text: string): string {
  return text.slice(0, TEXT_LENGTH_MAX).toWellFormed();
}
