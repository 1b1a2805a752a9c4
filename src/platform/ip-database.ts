import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type CityResponse, Reader } from 'mmdb-lib';
import { StartError } from './errors.ts';
import type { Events } from './events.ts';
import { type Loop, startLoop } from './loop.ts';

const CHECK_EVERY_MS = 60_000;

export interface IpDatabase {
  /** Returns an address's coordinates in degrees; undefined if unknown. */
  coordinatesOf(address: string): { latitude: number; longitude: number } | undefined;
}

/** A database without addresses. */
export const NO_IP_DATABASE: IpDatabase = { coordinatesOf: () => undefined };

/** Opens a file in MaxMind's format, such as GeoLite2 City. Throws StartError for any other file. */
export async function openIpDatabase(path: string) {
  let read = await readDatabase(path).catch((cause: unknown) => {
    const what = 'which cannot be read, or is not in the format of MaxMind: name a file like GeoLite2-City.mmdb';
    throw new StartError(`MUSTER_IP_DATABASE is "${path}", ${what}.`, { cause });
  });
  return {
    coordinatesOf(address: string) {
      if (isIP(address) === 0) return undefined;
      const { latitude, longitude } = lookUp(read.reader, address)?.location ?? {};
      return latitude === undefined || longitude === undefined ? undefined : { latitude, longitude };
    },
    /** Starts the loop that reads the file again after it was replaced. Keeps the old content if the new file is invalid. */
    startReading({ signal, events }: { signal: AbortSignal; events: Events }): Loop {
      const step = async () => {
        if ((await stampOf(path)) !== read.stamp) read = await readDatabase(path);
        return 0;
      };
      return startLoop({ name: 'ip-database', every_ms: CHECK_EVERY_MS, signal, events, step });
    },
  };
}

async function readDatabase(path: string): Promise<{ reader: Reader<CityResponse>; stamp: string }> {
  // Reads the stamp first, so that a file that is replaced meanwhile is read again later.
  const stamp = await stampOf(path);
  return { reader: new Reader<CityResponse>(await readFile(path)), stamp };
}

async function stampOf(path: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(path);
  return `${mtimeMs} ${size} ${ino}`;
}

function lookUp(reader: Reader<CityResponse>, address: string): CityResponse | null {
  try {
    return reader.get(ipaddr.process(address).toString());
  } catch {
    // A damaged part of the file has no coordinates.
    return null;
  }
}
