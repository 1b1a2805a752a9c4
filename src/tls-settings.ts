import { resolve } from 'node:path';
import { StartError } from './platform/errors.ts';
import { splitList } from './setting-texts.ts';
import type { Settings } from './settings.ts';

const [HTTPS_DEFAULT, HTTP_DEFAULT] = [443, 80];

/** The ports besides MUSTER_PORT, and their certificates. */
export interface TlsSettings {
  certificates: {
    /** Absolute paths. */
    files: { certificate_file: string; key_file: string }[];
    acme: { hosts: string[]; directory: string; email: string | undefined; ca_file: string | undefined } | undefined;
    /** Undefined without a local authority. */
    local_names: string[] | undefined;
  };
  /** Undefined without certificates. */
  https_port: number | undefined;
  /** Undefined if no port redirects to https. */
  http_port: number | undefined;
  /** The address of the API without MUSTER_PUBLIC_URL; undefined if no setting implies one. */
  public_url: string | undefined;
}

/** Reads the settings for https. Throws StartError if they contradict each other. */
export function readTlsSettings(settings: Settings): TlsSettings {
  const files = readPairs(settings.MUSTER_TLS_CERTIFICATE, settings.MUSTER_TLS_KEY);
  const hosts = [...new Set(splitList(settings.MUSTER_ACME_HOSTS).map((host) => host.toLowerCase()))];
  const has_acme = hosts.length > 0;
  const has_local = settings.MUSTER_TLS_LOCAL === 'on';
  const has_any = files.length > 0 || has_acme || has_local;
  if (!has_any && settings.MUSTER_HTTPS_PORT !== undefined) {
    throw new StartError(
      'MUSTER_HTTPS_PORT is set, but there is no certificate: set MUSTER_TLS_CERTIFICATE, MUSTER_ACME_HOSTS or MUSTER_TLS_LOCAL.',
    );
  }
  const https_port = has_any ? (settings.MUSTER_HTTPS_PORT ?? HTTPS_DEFAULT) : undefined;
  const http_port = has_any
    ? (settings.MUSTER_HTTP_PORT ?? defaultHttpPort(settings, { https_port, has_acme }))
    : undefined;
  if (!has_any && settings.MUSTER_HTTP_PORT !== undefined) {
    throw new StartError(
      'MUSTER_HTTP_PORT redirects to https, but there is no certificate: set MUSTER_TLS_CERTIFICATE, MUSTER_ACME_HOSTS or MUSTER_TLS_LOCAL.',
    );
  }
  assertDifferent({ MUSTER_PORT: settings.MUSTER_PORT, MUSTER_HTTPS_PORT: https_port, MUSTER_HTTP_PORT: http_port });
  const host = hosts[0] ?? (has_local ? 'localhost' : undefined);
  return {
    certificates: {
      files,
      acme: has_acme
        ? {
            hosts,
            directory: settings.MUSTER_ACME_DIRECTORY,
            email: settings.MUSTER_ACME_EMAIL,
            ca_file: settings.MUSTER_ACME_CA && resolve(settings.MUSTER_ACME_CA),
          }
        : undefined,
      local_names: has_local ? localNames(settings) : undefined,
    },
    https_port,
    http_port,
    public_url: host && `https://${host}${https_port === HTTPS_DEFAULT ? '' : `:${https_port}`}`,
  };
}

/** Returns the default of MUSTER_HTTP_PORT. If another program has 443, it usually has 80 as well. */
function defaultHttpPort(
  { MUSTER_PORT: port }: Settings,
  { https_port, has_acme }: { https_port: number | undefined; has_acme: boolean },
): number | undefined {
  // The authority asks at 80, whatever the port for https.
  if (has_acme) return HTTP_DEFAULT;
  return https_port === HTTPS_DEFAULT && port !== HTTP_DEFAULT ? HTTP_DEFAULT : undefined;
}

function readPairs(certificate_files: string | undefined, key_files: string | undefined) {
  const certificates = splitList(certificate_files);
  const keys = splitList(key_files);
  if (certificates.length !== keys.length) {
    throw new StartError(
      `MUSTER_TLS_CERTIFICATE names ${certificates.length} files and MUSTER_TLS_KEY ${keys.length}: each certificate needs its key.`,
    );
  }
  return certificates.map((certificate, index) => ({
    certificate_file: resolve(certificate),
    key_file: resolve(keys[index] ?? ''),
  }));
}

/** The names of this machine that need no DNS. */
function localNames({ MUSTER_SITES_DOMAIN: sites, MUSTER_SERVERS_DOMAIN: servers }: Settings): string[] {
  return [...new Set(['localhost', '127.0.0.1', '::1', sites, `*.${sites}`, `*.${servers}`])];
}

/** Throws StartError if two of these settings name the same port. */
export function assertDifferent(ports: Record<string, number | undefined>): void {
  const given = Object.entries(ports).filter(([, port]) => port !== undefined);
  for (const [name, port] of given) {
    const [other] = given.find((one) => one[0] !== name && one[1] === port) ?? [];
    if (other !== undefined) throw new StartError(`${name} and ${other} are both ${port}: set another port.`);
  }
}
