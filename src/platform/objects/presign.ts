import type { JWK } from 'jose';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { createSignedAddresses } from './signed-addresses.ts';

const SINGLE_LIFETIME_MS = 3_600_000;
const MULTIPART_LIFETIME_MS = 6 * SINGLE_LIFETIME_MS;
const UPLOADS = '/uploads/';

/** A part of a file to upload. An address allows the PUT of one part. */
export interface UploadPart {
  upload_id: string;
  /** The file's index in the upload's list. */
  file_number: number;
  part_number: number;
  /** The developer's name of the file. */
  path: string;
  byte_offset: number;
  content_length: number;
}

/** Creates and verifies addresses that allow the PUT of one part. */
export interface Presigner {
  sign(part: UploadPart, is_multipart: boolean): string;
  /** Returns the part of an address. Throws UPLOAD_SIGNATURE_INVALID if the address was changed or has expired. */
  verify(url: string): UploadPart;
}

export function createPresigner(key: JWK, clock: Clock, public_url: string): Presigner {
  const addresses = createSignedAddresses({ method: 'PUT', key, clock, public_url });
  return {
    sign(part, is_multipart) {
      const parameters = {
        file: String(part.file_number),
        part: String(part.part_number),
        path: part.path,
        offset: String(part.byte_offset),
        length: String(part.content_length),
      };
      const lifetime_ms = is_multipart ? MULTIPART_LIFETIME_MS : SINGLE_LIFETIME_MS;
      return addresses.sign(`${UPLOADS}${part.upload_id}`, parameters, lifetime_ms);
    },
    verify(url) {
      const address = addresses.verify(url);
      if (!address) throw new ServiceError('UPLOAD_SIGNATURE_INVALID', {});
      const { path, parameters } = address;
      const integer = (name: string) => Number(parameters.get(name));
      return {
        upload_id: path.slice(UPLOADS.length),
        file_number: integer('file'),
        part_number: integer('part'),
        path: parameters.get('path') ?? '',
        byte_offset: integer('offset'),
        content_length: integer('length'),
      };
    },
  };
}
