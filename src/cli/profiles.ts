import { damaged, readConfigFile, writeConfigFile } from './config-directory.ts';
import { isRecord } from './is-record.ts';

/** The service that commands talk to, and their game and namespace without options. */
export interface Profile {
  url: string;
  game?: string;
  namespace?: string;
}

/** Profiles by name. `muster use` chooses one; the first login creates `default`. */
interface Profiles {
  current: string;
  profiles: Record<string, Profile>;
}

const FILE = 'profiles.json';

export function readProfiles(): Profiles {
  const { current = 'default', profiles = {} } = readConfigFile(FILE);
  if (typeof current !== 'string' || !isRecord(profiles) || !Object.values(profiles).every(isProfile)) {
    throw damaged(FILE);
  }
  return { current, profiles: profiles as Record<string, Profile> };
}

export function writeProfiles(profiles: Profiles): void {
  writeConfigFile(FILE, profiles);
}

function isProfile(value: unknown): value is Profile {
  if (!isRecord(value)) return false;
  const { url, game, namespace } = value;
  const isText = (text: unknown) => text === undefined || typeof text === 'string';
  return typeof url === 'string' && URL.canParse(url) && isText(game) && isText(namespace);
}
