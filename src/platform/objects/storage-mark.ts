import type { Queries } from '../database/database.ts';
import { assert, type ErrorCode, ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { Objects } from './objects.ts';
import { objectStorage } from './tables.ts';

/** Its objects are named by marks. A copy of all objects is the same storage. */
const FOLDER = 'storage-marks';

interface StorageOptions {
  queries: Queries;
  objects: Objects;
  /** Where the objects are, for operators. */
  place: string;
  events: Events;
}

const STORAGE_FAILURES: ErrorCode[] = ['STORAGE_FULL', 'OBJECTS_UNAVAILABLE'];
const WARNING = 'uploaded files are not kept where the other processes of the database keep them';

/**
 * Compares the storage of this process with the one that the first process on the database had, since all of them must share
 * their uploaded files. Tells operators when it is another, and returns a warning for them. The first process marks its storage.
 */
export async function compareStorage({ queries, objects, place, events }: StorageOptions): Promise<string | undefined> {
  try {
    const [own_mark = await addMark(objects)] = await readMarks(objects);
    const known = await claim(queries, { mark: own_mark, place });
    // Two processes may have marked a new storage at once. A mark is in its storage before it is in the database.
    const is_same = known.mark === own_mark || (await readMarks(objects)).includes(known.mark);
    if (is_same) {
      if (known.place !== place) await queries.update(objectStorage).set({ place });
      return undefined;
    }
    const of_database = { place_of_database: known.place, mark_of_database: known.mark };
    const advice = `Share that storage, or use one bucket for all processes. If these are the same files, put an empty file ${FOLDER}/${known.mark} beside them.`;
    events.emit({ event: 'storage_differs', place, mark: own_mark, ...of_database, advice });
    return WARNING;
  } catch (cause) {
    // A start must succeed on a full disk too, since players need no uploads.
    if (!(cause instanceof ServiceError) || !STORAGE_FAILURES.includes(cause.code)) throw cause;
    events.emit({ event: 'storage_not_compared', place, cause });
    return undefined;
  }
}

async function readMarks(objects: Objects): Promise<string[]> {
  const keys = await objects.list(FOLDER);
  return [...keys.keys()].map((key) => key.slice(FOLDER.length + 1)).sort();
}

async function addMark(objects: Objects): Promise<string> {
  const mark = crypto.randomUUID();
  const content = Buffer.from(`${mark}\n`);
  await objects.put(`${FOLDER}/${mark}`, streamOf(content), content.length);
  return mark;
}

async function* streamOf(content: Uint8Array) {
  yield content;
}

/** Returns the storage of the database: this one, if none was known. */
async function claim(queries: Queries, own: { mark: string; place: string }) {
  await queries.insert(objectStorage).values(own).onConflictDoNothing();
  const [known] = await queries.select().from(objectStorage);
  assert(known, 'a storage that was claimed can be read');
  return known;
}
