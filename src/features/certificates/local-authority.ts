import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_nameConstraints,
  NameConstraints,
} from '@peculiar/asn1-x509';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Clock } from '../../platform/clock.ts';
import type { DataDirectory } from '../../platform/data-directory.ts';
import { StartError } from '../../platform/errors.ts';
import { systemCodeOf } from '../../platform/system/system-errors.ts';
import { DAY_MS } from '../../platform/units.ts';
import { type Certificate, parseCertificate } from './certificate.ts';
import { renewalOf } from './rules.ts';

const AUTHORITY_DAYS = 3_650;
const CERTIFICATE_DAYS = 90;
/** How far before its creation the validity of a certificate begins, because clocks of browsers may be slow. */
const BACKDATED_MS = 3_600_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const CERTIFICATE_FILE = 'local-ca.pem';
const KEY_FILE = 'local-ca-key.pem';
/** The files of the authority in the data directory. Browsers trust it once a user has imported it, so it should last. */
export const AUTHORITY_FILES = [CERTIFICATE_FILE, KEY_FILE];

interface Authority {
  certificate: X509Certificate;
  key: CryptoKey;
}

/**
 * A certificate authority of this machine, for development. Browsers trust its certificates once the user has imported
 * the authority's own, which the data directory keeps. It can sign no host names but those it was created for.
 */
export class LocalAuthority {
  /** The certificate to serve, signed for all names. */
  certificate: Certificate;
  /** The authority's own certificate, to be imported. */
  readonly file: string;
  readonly #authority: Authority;
  readonly #names: readonly string[];
  readonly #clock: Clock;

  private constructor(authority: Authority, first: Certificate, { data, names, clock }: LocalAuthorityOptions) {
    this.#authority = authority;
    this.certificate = first;
    this.#names = names;
    this.#clock = clock;
    this.file = join(data.path, CERTIFICATE_FILE);
  }

  /** Opens the authority. Creates it if there is none that may sign these names. */
  static async open(options: LocalAuthorityOptions): Promise<LocalAuthority> {
    const now = options.clock.now();
    const authority = (await readAuthority(options, now)) ?? (await createAuthority(options, now));
    return new LocalAuthority(authority, await sign(authority, options.names, now), options);
  }

  /** Signs the next certificate if it is due. */
  async renew(): Promise<void> {
    const now = this.#clock.now();
    if (now < renewalOf(this.certificate)) return;
    this.certificate = await sign(this.#authority, this.#names, now);
  }
}

interface LocalAuthorityOptions {
  data: DataDirectory;
  clock: Clock;
  /** Host names and addresses; `*.example.com` for all names directly below. */
  names: readonly string[];
}

/** Reads the authority; undefined if there is none that may sign these names. Throws StartError for files that it cannot use. */
async function readAuthority({ data, names }: LocalAuthorityOptions, now: Date): Promise<Authority | undefined> {
  const [certificate_file, key_file] = [join(data.path, CERTIFICATE_FILE), join(data.path, KEY_FILE)];
  if (!existsSync(certificate_file) || !existsSync(key_file)) return undefined;
  const [text, key_text] = [readOrRefuse(certificate_file), readOrRefuse(key_file)];
  try {
    const certificate = new X509Certificate(text);
    const may_sign_all = certificate.getExtension(id_ce_nameConstraints)?.equal(constrainTo(names)) ?? false;
    const remaining_ms = certificate.notAfter.getTime() - now.getTime();
    if (!may_sign_all || remaining_ms < CERTIFICATE_DAYS * DAY_MS) return undefined;
    return { certificate, key: await parseKey(key_text, text) };
  } catch (cause) {
    throw new StartError(
      `The local authority in ${certificate_file} and ${key_file} cannot be used (${cause}): restore both files, or remove them, so that Muster creates another authority, which browsers must import.`,
      { cause },
    );
  }
}

function readOrRefuse(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(
      `${file} cannot be read (${systemCodeOf(cause) ?? cause}): let the user of Muster read it, and check the disk.`,
      { cause },
    );
  }
}

async function parseKey(key: string, certificate: string): Promise<CryptoKey> {
  const [pkcs8] = PemConverter.decode(key);
  if (!pkcs8) throw new Error('the second file has no key');
  const is_its_own = createPublicKey(certificate).equals(createPublicKey(key));
  if (!is_its_own) throw new Error('the key belongs to another authority');
  return await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, true, ['sign']);
}

async function createAuthority({ data, names }: LocalAuthorityOptions, now: Date): Promise<Authority> {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=Muster local authority ${crypto.randomUUID().slice(0, 8)}`,
    ...validity(now, AUTHORITY_DAYS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      constrainTo(names),
    ],
  });
  data.writeSecret(KEY_FILE, `${await exportKey(keys.privateKey)}\n`);
  data.writeSecret(CERTIFICATE_FILE, `${certificate.toString('pem')}\n`);
  return { certificate, key: keys.privateKey };
}

/**
 * Returns the extension that limits an authority to names, so that its key is of no use for others. It leaves out
 * addresses: BoringSSL refuses every certificate of an authority that is limited to some.
 */
function constrainTo(names: readonly string[]): Extension {
  const domains = new Set(names.filter((name) => isIP(name) === 0).map((name) => name.replace(/^\*\./, '')));
  const bases = [...domains].map((dNSName) => new GeneralName({ dNSName }));
  const permittedSubtrees = new GeneralSubtrees(bases.map((base) => new GeneralSubtree({ base })));
  return new Extension(id_ce_nameConstraints, true, AsnConvert.serialize(new NameConstraints({ permittedSubtrees })));
}

async function sign({ certificate, key }: Authority, names: readonly string[], now: Date): Promise<Certificate> {
  const keys = await generateKeys();
  const signed = await X509CertificateGenerator.create({
    subject: 'CN=Muster',
    issuer: certificate.subject,
    ...validity(now, CERTIFICATE_DAYS),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: key,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
      ),
    ],
  });
  const chain = [signed, certificate].map((one) => one.toString('pem')).join('\n');
  return parseCertificate({ certificate: chain, key: await exportKey(keys.privateKey) });
}

const generateKeys = () => crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

async function exportKey(key: CryptoKey): Promise<string> {
  return PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

function validity(now: Date, days: number) {
  return {
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(now.getTime() + days * DAY_MS),
  };
}
