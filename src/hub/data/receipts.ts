import type { Answer } from './api.ts';

export type Receipt = Answer<
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/receipts/{ray_id}',
  'get'
>['receipt'];

const STAGES: [stage: keyof Receipt['stages_ms'], text: string][] = [
  ['checked', 'checked against the version'],
  ['captcha', 'captcha'],
  ['verified', 'verification'],
  ['queued', 'entered the queue'],
  ['decided', 'waited for its round'],
  ['seated', 'seat committed'],
  ['ready', 'waited until the lobby was ready'],
  ['answered', 'answered'],
];

/** A stage of a request: what happened, from when on, and for how long. */
export interface Stage {
  text: string;
  from_ms: number;
  ms: number;
}

/** Returns the stages of a request, in order. */
export function stagesOf({ stages_ms }: Receipt): Stage[] {
  const ends = STAGES.flatMap(([stage, text]) => {
    const end_ms = stages_ms[stage];
    // In the queue, it is the last of several rounds.
    const is_turn = stage === 'decided' && stages_ms.queued !== undefined;
    return end_ms === undefined ? [] : [{ text: is_turn ? 'waited for its turn' : text, end_ms }];
  }).sort((one, other) => one.end_ms - other.end_ms);
  return ends.map(({ text, end_ms }, index) => {
    const from_ms = ends[index - 1]?.end_ms ?? 0;
    return { text, from_ms, ms: end_ms - from_ms };
  });
}

/** Returns what a request asked for, in one line. */
export function describeRequest({ kind, request }: Receipt): string {
  const { game_modes, regions, tags, players, lobby_id, max_players, wait_ms } = request;
  const parts = [
    game_modes && `in ${game_modes.join(' or ')}`,
    lobby_id && `of lobby ${lobby_id.slice(-12)}`,
    regions && regions.length > 0 && `at ${regions.join(', ')}`,
    tags &&
      Object.keys(tags).length > 0 &&
      `with ${Object.entries(tags)
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')}`,
    max_players !== undefined && `of ${max_players} seats`,
    players > 1 && `for ${players} players`,
    wait_ms !== undefined && `waiting up to ${wait_ms / 1_000} s`,
  ];
  return [kind, ...parts.filter((part) => part !== undefined && part !== false && part !== '')].join(' ');
}

/** Returns the page of the service that explains an error code. */
export function errorHref(code: string): string {
  return `/docs/errors#${code.toLowerCase().replaceAll('_', '-')}`;
}
