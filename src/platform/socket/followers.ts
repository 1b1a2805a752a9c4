/** Maximum number of members of a shard. Publishing to them takes about 2 ms; then the event loop serves others. */
const SHARD_MAX = 500;

interface Shard<Member> {
  /** The name to which its frames are published. */
  name: string;
  members: Set<Member>;
  /** The number of the snapshot that all its members have been sent. */
  number: number | undefined;
  /** Bytes sent to each member since the last check of whether they read. */
  unchecked_bytes: number;
}

/**
 * The members that are up to date and receive each frame together. There may be thousands: frames are published shard by
 * shard, so that the event loop serves others in between.
 */
export class Followers<Member> {
  readonly #key: string;
  readonly shards: Shard<Member>[] = [];
  readonly #shard_by_member = new Map<Member, Shard<Member>>();

  constructor(key: string) {
    this.#key = key;
  }

  get size(): number {
    return this.#shard_by_member.size;
  }

  /** Adds a member that has been sent the same snapshot as the others. Returns the name of the shard that it has to follow. */
  add(member: Member, number: number | undefined): string {
    const shard = this.shards.find(({ members }) => members.size < SHARD_MAX) ?? this.#open();
    shard.number = number;
    shard.members.add(member);
    this.#shard_by_member.set(member, shard);
    return shard.name;
  }

  /** Returns the name of the shard that the member followed and the last number that it was sent; undefined if it did not follow. */
  remove(member: Member): Pick<Shard<Member>, 'name' | 'number'> | undefined {
    const shard = this.#shard_by_member.get(member);
    shard?.members.delete(member);
    this.#shard_by_member.delete(member);
    return shard;
  }

  members(): Iterable<Member> {
    return this.#shard_by_member.keys();
  }

  #open(): Shard<Member> {
    const name = `${this.#key}/${this.shards.length}`;
    const shard = { name, members: new Set<Member>(), number: undefined, unchecked_bytes: 0 };
    this.shards.push(shard);
    return shard;
  }
}
