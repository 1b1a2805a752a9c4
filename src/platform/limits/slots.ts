/**
 * Slots of this process that accounts share, such as games. An account gets another slot only while more slots are free
 * than it has, so that others get some.
 */
export class Slots {
  readonly max: number;
  readonly #by_account = new Map<string, number>();
  #taken = 0;

  constructor(max: number) {
    this.max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Returns whether an account may have one more: one account alone has up to a half of all. */
  hasRoomFor(account: string): boolean {
    return (this.#by_account.get(account) ?? 0) < this.max - this.#taken;
  }

  /** Takes a slot for an account. Does not check that there is room. */
  take(account: string): void {
    this.#by_account.set(account, (this.#by_account.get(account) ?? 0) + 1);
    this.#taken += 1;
  }

  free(account: string): void {
    const left = (this.#by_account.get(account) ?? 1) - 1;
    if (left > 0) this.#by_account.set(account, left);
    else this.#by_account.delete(account);
    this.#taken -= 1;
  }
}
