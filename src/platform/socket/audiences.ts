import { isFault } from '../errors.ts';
import { toCallersError } from '../http/answers.ts';
import { coalesceRuns } from '../runs.ts';
import type { Channel, Channels, Snapshot } from '../watch/channels.ts';
import type { View } from '../watch/views.ts';
import { Followers } from './followers.ts';
import { frames } from './frames.ts';

const RETRY_AFTER_MS = 1_000;
/**
 * Bytes sent to each member between two checks of whether it reads: a check costs a good part of what sending costs. A
 * socket checks all its subscriptions once a second, too.
 */
const UNCHECKED_BYTES_MAX = 64 * 1_024;

/** A subscription of a socket, as a member of its view's audience. */
export interface Member {
  /** The number of the latest snapshot that it has been sent; undefined if it has been sent none. */
  number: number | undefined;
  /** Whether it still has frames to read, or must not be sent anything at the moment. */
  isBusy(): boolean;
  send(frame: string): void;
  /** Starts or stops receiving what is published to a shard of followers. */
  follow(shard_name: string, is_following: boolean): void;
  /** Ends the subscription with the error. */
  fail(error: unknown): void;
}

export interface Audiences {
  join(view: View, member: Member): Membership;
}

interface Membership {
  /** The key under which the bodies of the subscription come. */
  key: string;
  /** Sends what the member has not been sent. Call it when the member is no longer busy. */
  catchUp(): void;
  /** Sends nothing more until the member catches up. */
  pause(): void;
  leave(): void;
}

interface AudiencesDependencies {
  channels: Pick<Channels, 'listen'>;
  /** Sends a frame to all sockets that follow a shard. */
  publish(shard_name: string, frame: string): void;
  /** Called when the reads of a view begin to fail through a fault of the service. They are retried. */
  onFault(view_name: string, cause: unknown): void;
}

/**
 * The subscriptions of one view form an audience. Each change is read once, made into one frame, and published to the
 * members that are up to date. The others catch up one by one before they follow: new members, and members that were busy
 * reading, which are sent only the newest snapshot.
 */
export function createAudiences(dependencies: AudiencesDependencies): Audiences {
  const audiences = new Map<string, Audience>();
  let audience_count = 0;
  return {
    join(view, member) {
      let audience = audiences.get(view.name);
      if (!audience) {
        audience_count += 1;
        audience = new Audience(`k${audience_count}`, view, dependencies);
        audiences.set(view.name, audience);
      }
      const joined = audience;
      joined.add(member);
      return {
        key: joined.key,
        catchUp: () => joined.catchUp(member),
        pause: () => joined.pause(member),
        leave() {
          if (joined.remove(member)) audiences.delete(view.name);
        },
      };
    },
  };
}

class Audience {
  readonly key: string;
  readonly #channel: Channel;
  readonly #leaveChannel: () => void;
  readonly #publish: AudiencesDependencies['publish'];
  readonly #onFault: (cause: unknown) => void;
  /** Whether the last read failed. */
  #is_failing = false;
  /** The number of the latest snapshot that the followers have been sent. */
  #number: number | undefined;
  readonly #followers: Followers<Member>;
  /** Members that have been sent something else, each with the function that brings it up to date. */
  readonly #behind = new Map<Member, () => Promise<void>>();
  /** Whether some shards of followers have been sent the newest frame and others have not. */
  #is_publishing = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  readonly #advance = coalesceRuns(() => this.#publishChanges());

  constructor(key: string, view: View, { channels, publish, onFault }: AudiencesDependencies) {
    this.key = key;
    this.#followers = new Followers(key);
    this.#publish = publish;
    this.#onFault = (cause) => onFault(view.name, cause);
    const { channel, leave } = channels.listen(view, this);
    this.#channel = channel;
    this.#leaveChannel = leave;
  }

  onChange(): void {
    void this.#advance();
  }

  add(member: Member): void {
    this.#behind.set(
      member,
      coalesceRuns(() => this.#sendChanges(member)),
    );
  }

  /** Returns whether that was the last member. */
  remove(member: Member): boolean {
    this.#unfollow(member);
    this.#behind.delete(member);
    if (this.#followers.size + this.#behind.size > 0) return false;
    this.#leaveChannel();
    clearTimeout(this.#retry);
    return true;
  }

  catchUp(member: Member): void {
    void this.#behind.get(member)?.();
  }

  /** Sends a member the newest snapshots, until it follows. */
  async #sendChanges(member: Member): Promise<void> {
    let empty_reads = 0;
    try {
      while (this.#behind.has(member) && !member.isBusy()) {
        const { number } = member;
        const snapshot =
          number === undefined ? await this.#channel.present(undefined) : await this.#channel.since(number);
        this.#is_failing = false;
        // A member that became busy meanwhile gets the newest snapshot later.
        if (!this.#behind.has(member) || member.isBusy()) return;
        if (snapshot) {
          member.send(frames.body(this.key, snapshot.text));
          member.number = snapshot.number;
          continue;
        }
        empty_reads += 1;
        // The followers may have been sent more during the read, so it reads once more. If there is still nothing new,
        // or if the member has been sent more than the followers, it follows after the next change.
        if (this.#tryFollow(member) || empty_reads > 1) return;
      }
    } catch (error) {
      this.#fail([member], error);
    }
  }

  /** Makes a member follow if it has been sent the same snapshot as the followers. */
  #tryFollow(member: Member): boolean {
    if (this.#is_publishing) return false;
    if (this.#followers.size === 0) this.#number = member.number;
    if (this.#number !== member.number) return false;
    this.#behind.delete(member);
    member.follow(this.#followers.add(member, this.#number), true);
    return true;
  }

  /** Publishes all changes to the followers, then lets the others catch up. */
  async #publishChanges(): Promise<void> {
    try {
      while (await this.#publishNext());
    } catch (error) {
      this.#fail([...this.#followers.members(), ...this.#behind.keys()], error);
    }
    for (const member of [...this.#behind.keys()]) this.catchUp(member);
  }

  /** Publishes the next change. Returns whether there may be another. */
  async #publishNext(): Promise<boolean> {
    const number = this.#number;
    // Without followers, changes that never pause would be read for nothing, forever.
    if (number === undefined || this.#followers.size === 0) return false;
    const changes = this.#channel.since(number);
    const snapshot = changes instanceof Promise ? await changes : changes;
    this.#is_failing = false;
    // All followers left during the read, and the new ones have been sent another snapshot.
    if (this.#number !== number) return true;
    if (!snapshot) return false;
    await this.#publishSnapshot(snapshot);
    this.#number = snapshot.number;
    return true;
  }

  async #publishSnapshot({ text, number }: Snapshot): Promise<void> {
    const frame = frames.body(this.key, text);
    this.#is_publishing = true;
    let published = 0;
    for (const shard of this.#followers.shards) {
      const { members } = shard;
      if (members.size === 0) continue;
      if (published > 0) await new Promise((resolve) => setImmediate(resolve));
      if (shard.unchecked_bytes + frame.length > UNCHECKED_BYTES_MAX) {
        for (const member of members) if (member.isBusy()) this.pause(member);
        shard.unchecked_bytes = 0;
      }
      shard.unchecked_bytes += frame.length;
      if (members.size > 0) this.#publish(shard.name, frame);
      shard.number = number;
      published += 1;
    }
    this.#is_publishing = false;
  }

  /** Makes a follower stay behind, at the latest snapshot that it was sent. */
  pause(member: Member): void {
    const followed = this.#unfollow(member);
    if (!followed) return;
    member.number = followed.number;
    this.add(member);
  }

  #unfollow(member: Member) {
    const followed = this.#followers.remove(member);
    if (followed) member.follow(followed.name, false);
    return followed;
  }

  /** Ends subscriptions whose caller is refused; retries after a failure of the service. */
  #fail(members: Member[], failure: unknown): void {
    const error = toCallersError(failure);
    if (error.status < 500) {
      for (const member of members) member.fail(error);
      return;
    }
    if (!this.#is_failing && isFault(error)) this.#onFault(error.cause);
    this.#is_failing = true;
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      void this.#advance();
    }, RETRY_AFTER_MS);
  }
}
