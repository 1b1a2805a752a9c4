import type { Queries } from '../database/database.ts';
import { assert, ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import { type Finding, toFinding } from '../findings.ts';
import { isShortOfSpace } from '../system/disk-space.ts';
import type { Objects } from './objects.ts';
import { objectStorage } from './tables.ts';

/** The folder of marks: a mark is the name of an object. Copies of all objects count as the same storage. */
export const MARKS_FOLDER = 'storage-marks';

interface StorageOptions {
  queries: Queries;
  objects: Objects;
  /** The location of the objects, for operators. */
  location: string;
  events: Events;
}

const MARK = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const DIFFERS = 'this process does not store uploaded files where the other processes on its database do';

/**
 * Compares the storage of this process with the one that the first process on the database marked, because all of them must
 * share their uploaded files. If it is another one, reports it to operators and returns a warning.
 */
export async function compareStorage({
  queries,
  objects,
  location,
  events,
}: StorageOptions): Promise<Finding | undefined> {
  try {
    const [own_mark = await addMark(objects)] = await readMarks(objects);
    const known = await claim(queries, { mark: own_mark, location });
    // Two processes may have marked a new storage at the same time. A mark is in the storage before it is in the database.
    const is_same = known.mark === own_mark || (await readMarks(objects)).includes(known.mark);
    if (is_same) {
      if (known.location !== location) await queries.update(objectStorage).set({ location });
      return undefined;
    }
    const of_database = { location_of_database: known.location, mark_of_database: known.mark };
    const advice = `Share that storage, or use one bucket for all processes. If these are the same files, put an empty file ${MARKS_FOLDER}/${known.mark} beside them.`;
    events.emit({ event: 'storage_differs', location, mark: own_mark, ...of_database, advice });
    return toFinding('STORAGE_DIFFERS', DIFFERS);
  } catch (cause) {
    // The service must start on a full disk too, because players need no uploads.
    const is_unavailable = cause instanceof ServiceError && cause.code === 'OBJECTS_UNAVAILABLE';
    if (!is_unavailable && !isShortOfSpace(cause)) throw cause;
    events.emit({ event: 'storage_not_compared', location, cause });
    return undefined;
  }
}

/** Returns the marks of the storage. Other programs may have added files of other names. */
async function readMarks(objects: Objects): Promise<string[]> {
  const keys = await objects.list(MARKS_FOLDER);
  const names = [...keys.keys()].map((key) => key.slice(MARKS_FOLDER.length + 1));
  return names.filter((name) => MARK.test(name)).sort();
}

async function addMark(objects: Objects): Promise<string> {
  const mark = crypto.randomUUID();
  const content = Buffer.from(`${mark}\n`);
  await objects.put(`${MARKS_FOLDER}/${mark}`, chunksOf(content), content.length);
  return mark;
}

async function* chunksOf(content: Uint8Array) {
  yield content;
}

/** Returns the storage recorded in the database. Records this one if there was none. */
async function claim(queries: Queries, own: { mark: string; location: string }) {
  await queries.insert(objectStorage).values(own).onConflictDoNothing();
  const [known] = await queries.select().from(objectStorage);
  assert(known, 'a storage that was claimed can be read');
  return known;
}
