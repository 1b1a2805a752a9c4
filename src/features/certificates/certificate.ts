import { createPrivateKey, X509Certificate } from 'node:crypto';

/** A certificate with its private key. */
export interface Certificate {
  /** PEM: the certificate, then its chain. */
  certificate: string;
  /** PEM. */
  key: string;
  /** The host names that it is valid for, in lower case. `*.example.com` stands for every name directly below. */
  names: string[];
  valid_from: Date;
  expires_at: Date;
}

/**
 * Why a certificate cannot be used. `parseCertificate` gives the rest of a sentence that begins with the certificate.
 */
export class CertificateError extends Error {}

/** Reads a certificate and its key in PEM. Throws CertificateError if they cannot be used together. */
export function parseCertificate({ certificate, key }: { certificate: string; key: string }): Certificate {
  const parsed = attempt(() => new X509Certificate(certificate), 'has no certificate in PEM');
  const private_key = attempt(() => createPrivateKey(key), 'has no private key in PEM without a passphrase');
  if (!parsed.checkPrivateKey(private_key)) throw new CertificateError('belongs to another private key');
  const names = [...(parsed.subjectAltName ?? '').matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(([, name = '']) =>
    name.toLowerCase(),
  );
  if (names.length === 0) throw new CertificateError('names no host (it has no subject alternative name)');
  return {
    certificate,
    key,
    names,
    valid_from: new Date(parsed.validFrom),
    expires_at: new Date(parsed.validTo),
  };
}

function attempt<Result>(parse: () => Result, problem: string): Result {
  try {
    return parse();
  } catch (cause) {
    throw new CertificateError(problem, { cause });
  }
}
