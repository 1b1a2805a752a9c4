import { PASSED_OVER } from '../shared/receipt-texts.ts';
import { counted, shortId } from '../terminal/terminal.ts';

/** The receipt of a request for seats, as far as it is shown. */
export interface Receipt {
  kind: string;
  request: {
    game_modes?: string[];
    regions?: string[];
    tags?: Record<string, string>;
    lobby_id?: string;
    max_players?: number;
    creates?: boolean;
    players: number;
    wait_ms?: number;
  };
  captcha?: { decision: string; provider?: string; reasons?: string[] };
  considered: Considered[];
  verification?: { is_accepted: boolean; status?: number; failure?: string };
  rounds: number;
  outcome: { lobby_id?: string; is_new?: boolean; code?: string };
  stages_ms: Record<string, number>;
}

interface Considered {
  lobby_id: string;
  game_mode_id: string;
  region_id: string;
  player_count: number;
  /** Missing for the planned lobby. */
  passed_over?: string;
}

const reasonOf = (passed_over: string): string => (PASSED_OVER as Record<string, string>)[passed_over] ?? passed_over;

const CAPTCHA: Record<string, (provider: string) => string> = {
  solved: (provider) => `${provider} accepted it`,
  solved_before: () => 'solved recently from this address',
  let_through: (provider) => `${provider} did not answer, so the request was let through`,
  required: () => 'the request had none',
  refused: (provider) => `${provider} refused it`,
  unavailable: (provider) => `${provider} did not answer`,
};

/** Returns the lines that explain a decision of the matchmaker: the seat or the refusal, and why. */
export function describeReceipt(receipt: Receipt): string[] {
  const { considered, outcome, captcha, verification, rounds, stages_ms } = receipt;
  const others = considered.filter(({ lobby_id }) => lobby_id !== outcome.lobby_id);
  const lines: [name: string, text: string | undefined][] = [
    ['asked for', describeRequest(receipt)],
    ['captcha', captcha && describeCaptcha(captcha)],
    ['verification', verification && describeVerification(verification)],
    ['rounds', rounds > 1 ? `${rounds}: it was decided ${counted(rounds - 1, 'more time', 'more times')}` : undefined],
    ...others.map((lobby): [string, string] => {
      const { passed_over } = lobby;
      const described = `${shortId(lobby.lobby_id)} (${describeLobby(lobby)} taken)`;
      return passed_over === undefined
        ? ['planned', described]
        : ['passed over', `${described}: ${reasonOf(passed_over)}`];
    }),
    ['time', describeStages(stages_ms)],
  ];
  const width = Math.max('passed over'.length, ...lines.map(([name]) => name.length)) + 2;
  const shown = lines.flatMap(([name, text]) => (text === undefined ? [] : [name.padEnd(width) + text]));
  const total_ms = Math.max(0, ...Object.values(stages_ms));
  const nothing = considered.length === 0 && outcome.is_new !== true ? ['No lobby was considered.'] : [];
  return [`${receipt.kind} in ${total_ms} ms: ${describeOutcome(receipt)}`, ...shown, ...nothing];
}

function describeOutcome({ outcome: { lobby_id, is_new, code }, considered }: Receipt): string {
  if (lobby_id === undefined) return `refused with ${code ?? 'no reason'}`;
  if (is_new) return `a seat in the new lobby ${shortId(lobby_id)}`;
  const chosen = considered.find((one) => one.lobby_id === lobby_id);
  const before = chosen ? ` (${describeLobby(chosen)} taken before)` : '';
  return `a seat in the lobby ${shortId(lobby_id)}${before}`;
}

function describeLobby({ game_mode_id, region_id, player_count }: Considered): string {
  return `${game_mode_id}, ${region_id}, ${player_count} ${player_count === 1 ? 'seat' : 'seats'}`;
}

function describeRequest({ request }: Receipt): string {
  const { game_modes, regions = [], tags = {}, players, lobby_id, max_players, wait_ms, creates } = request;
  const named = Object.entries(tags).map(([name, value]) => `${name}=${value}`);
  const text = [
    players === 1 ? 'a seat' : `${players} seats`,
    ...(game_modes ? [`in ${game_modes.join(' or ')}`] : []),
    ...(lobby_id === undefined ? [] : [`of the lobby ${shortId(lobby_id)}`]),
    ...(max_players === undefined ? [] : [`of a lobby for ${max_players}`]),
    ...(regions.length > 0 ? [`at ${regions.join(', ')}`] : []),
    ...(named.length > 0 ? [`with ${named.join(' ')}`] : []),
  ].join(' ');
  const wait = wait_ms === undefined ? '' : `, waiting up to ${wait_ms / 1_000} s`;
  return `${text}${creates === false ? ', in no new lobby' : ''}${wait}`;
}

function describeCaptcha({ decision, provider = 'its provider', reasons = [] }: NonNullable<Receipt['captcha']>) {
  const text = CAPTCHA[decision]?.(provider) ?? decision;
  return reasons.length === 0 ? text : `${text} (${reasons.join(', ')})`;
}

function describeVerification({ is_accepted, status, failure }: NonNullable<Receipt['verification']>): string {
  const why = failure ?? (status === undefined ? undefined : `status ${status}`);
  return `${is_accepted ? 'accepted' : 'refused'}${why === undefined ? '' : ` (${why})`}`;
}

function describeStages(stages_ms: Receipt['stages_ms']): string {
  const stages = Object.entries(stages_ms).sort(([, one], [, other]) => one - other);
  return stages.map(([stage, ms]) => `${stage} ${ms} ms`).join(', ');
}
