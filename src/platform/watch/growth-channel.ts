import type { ChannelTools, ChannelWork, Snapshot } from './channels.ts';
import type { View } from './views.ts';

/**
 * What only grows, like a log. Its number is that of the next piece. Nothing is left out and nothing comes twice: each
 * answer goes on where the one before ended.
 */
export function createGrowthChannel(sight: View & { kind: 'log' }, { share, show }: ChannelTools): ChannelWork {
  /** As far as we know. Those who wait wait here. */
  let end: number | undefined;
  /** The last look at what comes after the end, be it under way: it is for all who stand there, until there is news. */
  let look: Promise<Snapshot> | undefined;
  /** What was found last. */
  let newest: Snapshot | undefined;

  const readLast = (): Promise<Snapshot> =>
    share(`end ${sight.name}`, async () => {
      const { content, next } = await sight.last();
      return show(content, next);
    });

  const readFrom = (number: number): Promise<Snapshot> =>
    share(`${number} ${sight.name}`, async () => {
      const { content, next } = await sight.from(number);
      return show(content, next, number);
    });

  async function readOn(number: number): Promise<Snapshot> {
    const shown = await readFrom(number);
    if (end !== undefined && shown.number > end) {
      newest = shown;
      moveEnd(shown.number);
    }
    return shown;
  }

  function moveEnd(number: number): void {
    end = number;
    look = undefined;
  }

  function lookOn(number: number): Promise<Snapshot> {
    if (look) return look;
    const this_look = readOn(number);
    look = this_look;
    this_look.catch(() => {
      if (look === this_look) look = undefined;
    });
    return this_look;
  }

  async function since(number: number): Promise<Snapshot | undefined> {
    if (newest?.after === number) return newest;
    if (end === undefined || number > end) {
      const last = await readLast();
      // Others may have found more meanwhile.
      if (end === undefined || last.number > end) moveEnd(last.number);
      // Of a time before the database was restored, or made up.
      if (end !== undefined && number > end) return last;
    }
    const shown = await (number === end ? lookOn(number) : readOn(number));
    return shown.number === number ? undefined : shown;
  }

  return {
    since,
    peek: (number) => (newest?.after === number ? newest : undefined),
    present: async (number) => (number === undefined ? await readLast() : await readFrom(number)),
    hear() {
      look = undefined;
    },
    refresh: async () => end !== undefined && (await since(end)) !== undefined,
    rest() {
      newest = undefined;
    },
  };
}
