import type { MaybePromise } from '../maybe-promise.ts';
import type { ChannelTools, SharedChannel, Snapshot } from './channels.ts';
import { stateNumberOf } from './version-reads.ts';
import type { View } from './views.ts';

/** Creates the channel of a state, such as a lobby. Its number is that of `stateNumberOf`. */
export function createStateChannel(
  view: View & { kind: 'state' },
  { readVersions, share, toSnapshot }: ChannelTools,
): SharedChannel {
  /** The known versions of the topics. Notifications keep them up to date. */
  let versions: Map<string, number> | undefined;
  /** The changes during each read of versions in progress, because the read may miss them. */
  const version_reads = new Set<Map<string, number>>();
  let newest: Snapshot | undefined;
  let reads_begun = 0;
  let newest_read = 0;

  async function readNumber(): Promise<number> {
    const changed = new Map<string, number>();
    version_reads.add(changed);
    try {
      const read = await readVersions(view.topics);
      for (const [topic, version] of changed) read.set(topic, Math.max(version, read.get(topic) ?? 0));
      versions = read;
      return stateNumberOf(read);
    } finally {
      version_reads.delete(changed);
    }
  }

  const knownNumber = (): MaybePromise<number> => (versions ? stateNumberOf(versions) : readNumber());

  /**
   * Reads the number before the state. A state newer than its number costs one more read; a state older than its number
   * would hide a change.
   */
  async function read(): Promise<Snapshot> {
    reads_begun += 1;
    const this_read = reads_begun;
    const number = await knownNumber();
    const snapshot = toSnapshot(await view.read(), number);
    if (this_read < newest_read) return newest ?? snapshot;
    newest_read = this_read;
    newest = snapshot;
    return snapshot;
  }

  const readTogether = () => share(`state ${view.name}`, read);

  async function readSince(number: number): Promise<Snapshot | undefined> {
    const known = await knownNumber();
    if (number === known) return undefined;
    // A higher number is from a process that has seen more changes, or from before the database was restored.
    if (number > known && number === (await readNumber())) return undefined;
    return await present();
  }

  async function present(): Promise<Snapshot> {
    const known = await knownNumber();
    return newest?.number === known ? newest : await readTogether();
  }

  return {
    async present(number) {
      const snapshot = await present();
      // A state may be newer than its number, but the same number must always show the same state.
      if (snapshot.number !== number || (await readNumber()) === number) return snapshot;
      return await present();
    },
    since(number) {
      if (!versions) return readSince(number);
      const known = stateNumberOf(versions);
      if (number === known) return undefined;
      return number < known && newest?.number === known ? newest : readSince(number);
    },
    onChange(topic, version) {
      const known = versions?.get(topic) ?? 0;
      for (const changed of version_reads) changed.set(topic, Math.max(version, changed.get(topic) ?? 0));
      if (version >= known) versions?.set(topic, version);
      // A version falls only if its topic was deleted or the database was restored, so the known ones may be wrong.
      else versions = undefined;
    },
    async refresh() {
      if (newest?.number !== (await knownNumber())) await readTogether();
      return false;
    },
    evict() {
      newest = undefined;
    },
  };
}
