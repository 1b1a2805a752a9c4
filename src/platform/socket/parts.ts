/** So many are told in one go, which takes about 2 ms; then it is the turn of whatever else waits. */
const PART_MAX = 500;

/** Some of those who are told the same at the same time. */
interface Part<Member> {
  /** What is published to. */
  topic: string;
  members: Set<Member>;
  /** What all of them have been told. */
  number: number | undefined;
  /** Bytes that were sent to each since it was looked whether all of them read. */
  unlooked_bytes: number;
}

/**
 * Those who are told the same at the same time. There may be thousands: they are told in parts, so that the next news is
 * read, and others are answered, while they are.
 */
export class Parts<Member> {
  readonly #key: string;
  readonly #parts: Part<Member>[] = [];
  readonly #places = new Map<Member, Part<Member>>();

  constructor(key: string) {
    this.#key = key;
  }

  get size(): number {
    return this.#places.size;
  }

  /** Adds one who has been told as much as the others. Gives the topic on which he is told. */
  add(member: Member, number: number | undefined): string {
    const part = this.#parts.find(({ members }) => members.size < PART_MAX) ?? this.#open();
    part.number = number;
    part.members.add(member);
    this.#places.set(member, part);
    return part.topic;
  }

  /** Gives the topic on which he was told, and how much; undefined when he was not. */
  remove(member: Member): Pick<Part<Member>, 'topic' | 'number'> | undefined {
    const part = this.#places.get(member);
    part?.members.delete(member);
    this.#places.delete(member);
    return part;
  }

  members(): Iterable<Member> {
    return this.#places.keys();
  }

  /** Calls `tell` for each part, one after the other; then all have been told `number`. */
  async each(number: number, tell: (part: Part<Member>) => void): Promise<void> {
    let told = 0;
    for (const part of this.#parts) {
      if (part.members.size === 0) continue;
      if (told > 0) await new Promise((resolve) => setImmediate(resolve));
      tell(part);
      part.number = number;
      told += 1;
    }
  }

  #open(): Part<Member> {
    const topic = `${this.#key}/${this.#parts.length}`;
    const part = { topic, members: new Set<Member>(), number: undefined, unlooked_bytes: 0 };
    this.#parts.push(part);
    return part;
  }
}
