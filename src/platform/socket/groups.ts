import { toCallersError } from '../http/answers.ts';
import type { Channel, Channels, Snapshot } from '../watch/channels.ts';
import type { View } from '../watch/views.ts';
import { frames } from './frames.ts';
import { Parts } from './parts.ts';

const RETRY_AFTER_MS = 1_000;
/** So much may be sent to each before it is looked whether he reads: to look costs a good part of what sending does. */
const UNLOOKED_BYTES_MAX = 64 * 1_024;

/** One who sees a group's sight: a subscription of a socket. */
export interface Member {
  /** Where he stands; undefined has seen nothing. */
  number: number | undefined;
  /** Whether he still reads what was sent to him before, or may not be sent anything at the moment. */
  isBusy(): boolean;
  send(frame: string): void;
  /** From now on what is published on the topic reaches him, or not any more. */
  follow(topic: string, is_following: boolean): void;
  /** It cannot be seen any more. */
  fail(error: unknown): void;
}

export interface Groups {
  /** Lets somebody see a sight until he leaves. */
  join(sight: View, member: Member): Joined;
}

interface Joined {
  /** Marks the bodies that are meant for him. */
  key: string;
  /** He is not busy any more. */
  catchUp(): void;
  /** Nothing is sent to him until he catches up. */
  pause(): void;
  leave(): void;
}

interface GroupsDependencies {
  channels: Pick<Channels, 'listen' | 'leave'>;
  /** Sends a frame to everybody who follows the topic. */
  publish(topic: string, frame: string): void;
}

/**
 * All who see the same are a group. What is new is read once, made into one frame, and published to those who stand where
 * the group stands. Others catch up one by one and then stand with the rest: those who come, and those who were busy
 * reading and so are sent only the newest when they are done.
 */
export function createGroups(dependencies: GroupsDependencies): Groups {
  const groups = new Map<string, Group>();
  let numbered = 0;
  return {
    join(sight, member) {
      let group = groups.get(sight.name);
      if (!group) {
        numbered += 1;
        group = new Group(`k${numbered}`, sight, dependencies);
        groups.set(sight.name, group);
      }
      const joined = group;
      joined.add(member);
      return {
        key: joined.key,
        catchUp: () => joined.catchUp(member),
        pause: () => joined.pause(member),
        leave() {
          if (joined.remove(member)) groups.delete(sight.name);
        },
      };
    },
  };
}

interface Place {
  /** Whether somebody sees to him at the moment, and whether he is to look again after that. */
  is_attended: boolean;
  is_wanted: boolean;
}

class Group {
  readonly key: string;
  readonly #channel: Channel;
  readonly #stop: () => void;
  readonly #publish: GroupsDependencies['publish'];
  /** Where those stand who follow. */
  #number: number | undefined;
  readonly #following: Parts<Member>;
  /** Those who stand elsewhere. */
  readonly #behind = new Map<Member, Place>();
  #is_advancing = false;
  /** While some have been told already, and others not yet. */
  #is_telling = false;
  #has_news = false;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(key: string, sight: View, { channels, publish }: GroupsDependencies) {
    this.key = key;
    this.#following = new Parts(key);
    this.#publish = publish;
    this.#channel = channels.listen(sight, this);
    this.#stop = () => channels.leave(sight, this);
  }

  onChange(): void {
    void this.#advance();
  }

  add(member: Member): void {
    this.#behind.set(member, { is_attended: false, is_wanted: false });
  }

  /** Gives whether nobody is left. */
  remove(member: Member): boolean {
    this.#unfollow(member);
    this.#behind.delete(member);
    if (this.#following.size + this.#behind.size > 0) return false;
    this.#stop();
    clearTimeout(this.#retry);
    return true;
  }

  /** Sends somebody who stands elsewhere what he has not seen, until he stands with the others. */
  catchUp(member: Member): void {
    const place = this.#behind.get(member);
    if (!place) return;
    place.is_wanted = true;
    if (!place.is_attended) void this.#attend(member, place);
  }

  async #attend(member: Member, place: Place): Promise<void> {
    place.is_attended = true;
    try {
      while (place.is_wanted) {
        place.is_wanted = false;
        await this.#sendNews(member);
      }
    } catch (error) {
      this.#fail([member], error);
    }
    place.is_attended = false;
  }

  async #sendNews(member: Member): Promise<void> {
    let times_nothing = 0;
    while (this.#behind.has(member) && !member.isBusy()) {
      const { number } = member;
      const shown = number === undefined ? await this.#channel.present(undefined) : await this.#channel.since(number);
      // Busy with something else since: he is sent what is newest then.
      if (!this.#behind.has(member) || member.isBusy()) return;
      if (shown) {
        member.send(frames.body(this.key, shown.text));
        member.number = shown.number;
        continue;
      }
      times_nothing += 1;
      // The others may have been told while we looked: then there is something now. If there is not, or if he has seen
      // more than they, he joins them when they are told next.
      if (this.#takeAlong(member) || times_nothing > 1) return;
    }
  }

  /** Lets somebody follow who stands where the others do. */
  #takeAlong(member: Member): boolean {
    if (this.#is_telling) return false;
    if (this.#following.size === 0) this.#number = member.number;
    if (this.#number !== member.number) return false;
    this.#behind.delete(member);
    member.follow(this.#following.add(member, this.#number), true);
    return true;
  }

  /** Publishes what is new. News that comes meanwhile is published after it. */
  async #advance(): Promise<void> {
    this.#has_news = true;
    if (this.#is_advancing) return;
    this.#is_advancing = true;
    try {
      while (this.#has_news) {
        this.#has_news = false;
        const number = this.#number;
        const shown = number === undefined ? undefined : await this.#channel.since(number);
        // Those for whom it was looked have gone, and those who follow now stand elsewhere.
        if (this.#number !== number) {
          this.#has_news = true;
        } else if (shown) {
          this.#has_news = true;
          await this.#tell(shown);
          this.#number = shown.number;
        }
      }
    } catch (error) {
      this.#fail([...this.#following.members(), ...this.#behind.keys()], error);
    }
    this.#is_advancing = false;
    for (const member of [...this.#behind.keys()]) this.catchUp(member);
  }

  async #tell({ text, number }: Snapshot): Promise<void> {
    const frame = frames.body(this.key, text);
    this.#is_telling = true;
    await this.#following.each(number, (part) => {
      const { topic, members } = part;
      if (part.unlooked_bytes + frame.length > UNLOOKED_BYTES_MAX) {
        for (const member of members) if (member.isBusy()) this.pause(member);
        part.unlooked_bytes = 0;
      }
      part.unlooked_bytes += frame.length;
      if (members.size > 0) this.#publish(topic, frame);
    });
    this.#is_telling = false;
  }

  /** From now on he stands behind, where he stood with the others. */
  pause(member: Member): void {
    const left = this.#unfollow(member);
    if (!left) return;
    member.number = left.number;
    this.#behind.set(member, { is_attended: false, is_wanted: false });
  }

  #unfollow(member: Member) {
    const left = this.#following.remove(member);
    if (left) member.follow(left.topic, false);
    return left;
  }

  /** What a caller did is final for him; what befell us passes, and is tried again. */
  #fail(members: Member[], failure: unknown): void {
    const error = toCallersError(failure);
    if (error.status < 500) {
      for (const member of members) member.fail(error);
      return;
    }
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      void this.#advance();
    }, RETRY_AFTER_MS);
  }
}
