/**
 * Slots of this process that games share. A game gets another slot only while more slots are free than the game has, so
 * that other games get some.
 */
export class Slots {
  readonly max: number;
  readonly #of_games = new Map<string, number>();
  #taken = 0;

  constructor(max: number) {
    this.max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Returns whether a game may have one more: one game alone has up to a half of all, two up to a third each. */
  hasRoomFor(game_id: string): boolean {
    return (this.#of_games.get(game_id) ?? 0) < this.max - this.#taken;
  }

  /** Takes a slot for a game. Does not check that there is room. */
  take(game_id: string): void {
    this.#of_games.set(game_id, (this.#of_games.get(game_id) ?? 0) + 1);
    this.#taken += 1;
  }

  free(game_id: string): void {
    const left = (this.#of_games.get(game_id) ?? 1) - 1;
    if (left > 0) this.#of_games.set(game_id, left);
    else this.#of_games.delete(game_id);
    this.#taken -= 1;
  }
}
