import type { ChannelTools, ChannelWork, Snapshot } from './channels.ts';
import type { View } from './views.ts';

/**
 * What can look different, like a lobby. Its number is the sum of its topics' versions: it rises when any of them does.
 */
export function createStateChannel(
  sight: View & { kind: 'state' },
  { readVersions, share, show }: ChannelTools,
): ChannelWork {
  /** Of its topics, as far as we know; kept up to date by news. */
  let versions: Map<string, number> | undefined;
  /** For each reading of versions that is under way, what was heard meanwhile: it may not have seen that. */
  const readings = new Set<Map<string, number>>();
  let newest: Snapshot | undefined;
  let reads_begun = 0;
  let newest_read = 0;

  async function readNumber(): Promise<number> {
    const heard = new Map<string, number>();
    readings.add(heard);
    try {
      const read = await readVersions(sight.topics);
      for (const [topic, version] of heard) read.set(topic, Math.max(version, read.get(topic) ?? 0));
      versions = read;
      return sum(read);
    } finally {
      readings.delete(heard);
    }
  }

  const knownNumber = async () => (versions ? sum(versions) : await readNumber());

  /** The number before the view: a view that is newer than its number costs one look more, the reverse would hide a change. */
  async function read(): Promise<Snapshot> {
    reads_begun += 1;
    const this_read = reads_begun;
    const number = await knownNumber();
    const shown = show(await sight.read(), number);
    if (this_read < newest_read) return newest ?? shown;
    newest_read = this_read;
    newest = shown;
    return shown;
  }

  const readTogether = () => share(`state ${sight.name}`, read);

  async function present(): Promise<Snapshot> {
    const known = await knownNumber();
    return newest?.number === known ? newest : await readTogether();
  }

  return {
    peek(number) {
      if (!versions) return undefined;
      const known = sum(versions);
      if (number === known) return null;
      return number < known && newest?.number === known ? newest : undefined;
    },
    async present(number) {
      const shown = await present();
      // A view may be newer than its number. Under the number that somebody has seen already, he must see the same again.
      if (shown.number !== number || (await readNumber()) === number) return shown;
      return await present();
    },
    async since(number) {
      const known = await knownNumber();
      if (number === known) return undefined;
      // Told by another process that has heard more than we have; or by this one, before the database was restored.
      if (number > known && number === (await readNumber())) return undefined;
      return await present();
    },
    hear(topic, version) {
      const known = versions?.get(topic) ?? 0;
      for (const heard of readings) heard.set(topic, Math.max(version ?? 0, heard.get(topic) ?? 0));
      if (version !== undefined && version >= known) versions?.set(topic, version);
      // Versions do not go back: we have misheard, or the database was restored.
      else versions = undefined;
    },
    async refresh() {
      if (newest?.number !== (await knownNumber())) await readTogether();
      return false;
    },
    rest() {
      newest = undefined;
    },
  };
}

function sum(versions: Map<string, number>): number {
  let total = 0;
  for (const version of versions.values()) total += version;
  return total;
}
