import type { BotsReport } from './protocol.ts';

/** Times of finds that are kept: the latest ones. */
const TIMES_MAX = 5_000;
const LISTED_MAX = 20;

/** Counts what bots see, in bounded memory. */
export class Tally {
  waiting = 0;
  playing = 0;
  connected = 0;
  without_port = 0;
  without_tls = 0;
  only_seated = 0;
  private seats = 0;
  private readonly find_ms: number[] = [];
  private readonly refused: BotsReport['refused'] = {};
  private unreached: string[] = [];
  private lobbies: string[] = [];

  countSeat(lobby_id: string, ms: number): void {
    this.find_ms[this.seats % TIMES_MAX] = ms;
    this.seats += 1;
    this.lobbies = [lobby_id, ...this.lobbies.filter((one) => one !== lobby_id)].slice(0, LISTED_MAX);
  }

  countRefusal(code: string, ray_id: string | undefined): void {
    this.refused[code] = { count: (this.refused[code]?.count ?? 0) + 1, ray_id };
  }

  countUnreached(lobby_id: string): void {
    this.unreached = [lobby_id, ...this.unreached].slice(0, LISTED_MAX);
  }

  report(): BotsReport {
    const { waiting, playing, seats, connected, without_port, without_tls, only_seated } = this;
    const { refused, unreached, lobbies } = this;
    const sorted = this.find_ms.toSorted((one, other) => one - other);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    const counts = { waiting, playing, seats, connected, without_port, without_tls, only_seated };
    return { ...counts, p50_ms: at(0.5), p95_ms: at(0.95), refused, unreached, lobbies };
  }
}
