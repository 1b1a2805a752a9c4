import type { ChannelTools, ChannelWork, Shown } from './channels.ts';
import type { Sight } from './sights.ts';

/**
 * What only grows, like a log. Its number is that of the next piece. Nothing is left out and nothing comes twice: each
 * answer goes on where the one before ended.
 */
export function createGrowthChannel(sight: Sight & { kind: 'growth' }, { share, show }: ChannelTools): ChannelWork {
  /** As far as we know. Those who wait wait here. */
  let end: number | undefined;
  let may_have_grown = true;
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

  async function since(number: number): Promise<Shown | undefined> {
    if (newest?.after === number) return newest;
    end ??= (await readLast()).number;
    if (number === end && !may_have_grown) return undefined;
    // Before it is read: what is heard meanwhile may not be in it.
    if (number === end) may_have_grown = false;
    const shown = await readFrom(number);
    if (shown.number === number) return undefined;
    if (shown.number > end) {
      end = shown.number;
      newest = shown;
      // There may be more than fits into one answer.
      may_have_grown = true;
    }
    return shown;
  }

  return {
    since,
    present: async (number) => (number === undefined ? await readLast() : await readFrom(number)),
    hear() {
      may_have_grown = true;
    },
    refresh: async () => end !== undefined && (await since(end)) !== undefined,
    rest() {
      newest = undefined;
    },
  };
}
