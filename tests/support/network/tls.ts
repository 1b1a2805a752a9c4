import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';

const DAY_MS = 24 * 3_600_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Creates a self-signed certificate for names, and its key. */
export async function makeCertificate(
  names: string[],
  { not_before = new Date(Date.now() - DAY_MS), not_after = new Date(Date.now() + 30 * DAY_MS) } = {},
): Promise<{ certificate: string; key: string }> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const extensions = names.map((value) => ({ type: 'dns' as const, value }));
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${crypto.randomUUID()}`,
    notBefore: not_before,
    notAfter: not_after,
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: names.length === 0 ? [] : [new SubjectAlternativeNameExtension(extensions)],
  });
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { certificate: certificate.toString('pem'), key: PemConverter.encode(pkcs8, 'PRIVATE KEY') };
}

/** Writes a new certificate to files. Returns it, and the settings that name the files. */
export async function writeCertificate(...args: Parameters<typeof makeCertificate>) {
  const folder = await mkdtemp(join(tmpdir(), 'certificate-'));
  const { certificate, key } = await makeCertificate(...args);
  const files = { MUSTER_TLS_CERTIFICATE: join(folder, 'a.crt'), MUSTER_TLS_KEY: join(folder, 'a.key') };
  await writeFile(files.MUSTER_TLS_CERTIFICATE, certificate);
  await writeFile(files.MUSTER_TLS_KEY, key);
  return { certificate, files };
}

/**
 * Opens a connection to a port as a client that wants `host`, and waits for its end of the handshake. `address`: by default
 * this machine.
 */
export async function openTls(
  port: number,
  host: string,
  { ca, address = '127.0.0.1' }: { ca?: string; address?: string } = {},
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const options = { host: address, port, servername: host, ...(ca ? { ca } : { rejectUnauthorized: false }) };
  const socket = connect(options, resolve);
  socket.on('error', reject);
  await promise;
  return socket;
}

/** Returns the SHA-256 fingerprint of the certificate that a client gets. */
export async function fingerprintAt(port: number, host: string): Promise<string> {
  const socket = await openTls(port, host);
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}
