import { isIP } from 'node:net';
import { StartError } from './platform/errors.ts';
import { PORT_MAX } from './platform/networks.ts';
import { parseAllowList } from './platform/outbound/addresses.ts';

// Settings that are texts with a form of their own. All functions throw StartError for an invalid text.

const NAME_SERVER =
  /^(?:\[(?<v6>[^\]]+)\](?::(?<port>\d+))?|(?<address>[0-9.]+)(?::(?<port>\d+))?|(?<address>[0-9A-Fa-f:]+))$/;

interface CaptchaKeys {
  site_key: string;
  secret_key: string;
}

/** Keys for captchas of versions that have no keys of their own. */
export interface SharedCaptchaKeys {
  hcaptcha?: CaptchaKeys;
  turnstile?: CaptchaKeys;
}

interface Coordinates {
  latitude: number;
  longitude: number;
}

/** Returns the keys of a provider. Throws StartError if only one of the two is set. */
export function readCaptchaKeys(
  provider: keyof SharedCaptchaKeys,
  { site_key, secret_key }: { site_key: string | undefined; secret_key: string | undefined },
): SharedCaptchaKeys {
  if (site_key !== undefined && secret_key !== undefined) return { [provider]: { site_key, secret_key } };
  if (site_key === undefined && secret_key === undefined) return {};
  const prefix = `MUSTER_${provider.toUpperCase()}`;
  const [given, missing] = site_key === undefined ? ['SECRET', 'SITE'] : ['SITE', 'SECRET'];
  throw new StartError(`${prefix}_${given}_KEY is set, but ${prefix}_${missing}_KEY is not: set both, or neither.`);
}

/** Parses `26000-31999`. The range must not include a port of the service; `own` has those by their settings. */
export function parsePortRange(text: string, own: Record<string, number | undefined>): { min: number; max: number } {
  const [min = 0, max = 0] = text.split('-').map(Number);
  if (min < 1_024 || max > PORT_MAX || min > max) {
    const expected = `expected two ports from 1024 to ${PORT_MAX}, the lower one first, like 26000-31999`;
    throw new StartError(`MUSTER_SERVER_PORTS is "${text}": ${expected}.`);
  }
  for (const [name, port] of Object.entries(own)) {
    if (port === undefined || port < min || port > max) continue;
    throw new StartError(
      `MUSTER_SERVER_PORTS is "${text}", which includes ${name} (${port}): choose a range without it.`,
    );
  }
  return { min, max };
}

/** Splits a list with commas. */
export function splitList(text = ''): string[] {
  const entries = text.split(',').map((entry) => entry.trim());
  return entries.filter((entry) => entry !== '');
}

/** Parses `192.0.2.53, [2001:db8::53]:53`. */
export function parseNameServers(text: string | undefined): string[] {
  const servers = splitList(text);
  for (const server of servers) {
    const { v6, address = v6 ?? '', port = '53' } = NAME_SERVER.exec(server)?.groups ?? {};
    const is_port = Number(port) >= 1 && Number(port) <= PORT_MAX;
    if (isIP(address) === 0 || !is_port) {
      throw new StartError(`MUSTER_NAME_SERVERS has "${server}": expected an address, with a port or without.`);
    }
  }
  return servers;
}

/** Parses `10.1.0.0/16, verify.internal:8080`. */
export function parseOutboundAllow(text?: string): string[] {
  const given = splitList(text);
  try {
    parseAllowList(given);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const expected = 'expected a network, an address or a host, with a port or without';
    throw new StartError(`MUSTER_OUTBOUND_ALLOW has "${cause.message}": ${expected}.`, { cause });
  }
  return given;
}

/** Parses `50.11,8.68`: latitude and longitude in degrees. */
export function parseCoordinates(text: string | undefined): Coordinates | undefined {
  if (text === undefined) return undefined;
  const [latitude = 0, longitude = 0] = text.split(',').map(Number);
  if (Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180) return { latitude, longitude };
  const expected = 'expected a latitude from -90 to 90 and a longitude from -180 to 180, like 50.11,8.68';
  throw new StartError(`MUSTER_DATACENTER_COORDINATES is "${text}": ${expected}.`);
}
