import type { ChannelTools, ChannelWork, Shown } from './channels.ts';
import type { Sight } from './sights.ts';

/**
 * What only grows, like a log. Its number is that of the next piece. Nothing is left out and nothing comes twice: each
 * answer goes on where the one before ended.
 */
export function createGrowthChannel(sight: Sight & { kind: 'growth' }, { share, show }: ChannelTools): ChannelWork {
  /** As far as we know. Those who wait wait here. */
  let end: number | undefined;
  /** The last look at what comes after the end, be it under way: it is for all who stand there, until there is news. */
  let look: Promise<Shown> | undefined;
  /** What was found last. */
  let newest: Shown | undefined;

  const readLast = (): Promise<Shown> =>
    share(`end ${sight.name}`, async () => {
      const { view, next } = await sight.last();
      return show(view, next);
    });

  const readFrom = (number: number): Promise<Shown> =>
    share(`${number} ${sight.name}`, async () => {
      const { view, next } = await sight.from(number);
      return show(view, next, number);
    });

  async function readOn(number: number): Promise<Shown> {
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

  function lookOn(number: number): Promise<Shown> {
    if (look) return look;
    const this_look = readOn(number);
    look = this_look;
    this_look.catch(() => {
      if (look === this_look) look = undefined;
    });
    return this_look;
  }

  async function since(number: number): Promise<Shown | undefined> {
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
