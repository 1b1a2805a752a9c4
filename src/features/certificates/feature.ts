import type { Feature } from '../../platform/feature.ts';
import { type Certificates, type CertificatesDependencies, createCertificates } from './certificates.ts';

/** Opens the certificates for https. Throws StartError for files that cannot be used. */
export async function openCertificates(dependencies: CertificatesDependencies): Promise<Feature<Certificates>> {
  const certificates = await createCertificates(dependencies);
  return { api: certificates, startWork: certificates.startWork };
}
