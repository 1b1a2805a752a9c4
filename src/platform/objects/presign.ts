import { createHmac, timingSafeEqual } from 'node:crypto';
import type { JWK } from 'jose';
import type { Clock } from '../clock.ts';
import { assert, ServiceError } from '../errors.ts';

const SINGLE_LIFETIME_MS = 3_600_000;
const MULTIPART_LIFETIME_MS = 6 * SINGLE_LIFETIME_MS;
const SIGNATURE = '&signature=';
/** Of HMAC-SHA256 (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32;

/** One PUT of one part of one file: everything that an address allows. */
export interface UploadPart {
  upload_id: string;
  /** The file's place in the upload's list. */
  file_number: number;
  part_number: number;
  /** The user's name of the file. */
  path: string;
  byte_offset: number;
  content_length: number;
}

/** Makes addresses that allow one PUT, and checks them: one function each, for every upload there is. */
export interface Presigner {
  sign(part: UploadPart, is_multipart: boolean): string;
  /** The part that an address stands for. Throws UPLOAD_SIGNATURE_INVALID when a character of it was changed, or late. */
  verify(url: string): UploadPart;
}

/**
 * The signature is an HMAC-SHA256 over the method and the address as it is written, up to the signature itself: there is
 * no second spelling of an address that is also good.
 */
export function createPresigner(key: JWK, clock: Clock, public_url: string): Presigner {
  const secret = Buffer.from(key.k ?? '', 'base64url');
  assert(secret.length >= SECRET_BYTES_MIN, 'the key of upload addresses is a secret');

  function signatureOf(path_and_query: string): string {
    return createHmac('sha256', secret).update(`PUT ${path_and_query}`).digest('base64url');
  }

  return {
    sign(part, is_multipart) {
      const expires = clock.now().getTime() + (is_multipart ? MULTIPART_LIFETIME_MS : SINGLE_LIFETIME_MS);
      const query = new URLSearchParams({
        file: String(part.file_number),
        part: String(part.part_number),
        path: part.path,
        offset: String(part.byte_offset),
        length: String(part.content_length),
        expires: String(expires),
      });
      const signed = `/uploads/${part.upload_id}?${query}`;
      return `${public_url}${signed}${SIGNATURE}${signatureOf(signed)}`;
    },
    verify(url) {
      const { pathname, search, searchParams } = new URL(url);
      const written = `${pathname}${search}`;
      const [signed = '', given = '', ...more] = written.split(SIGNATURE);
      // What a reader of addresses leaves out, a fragment or a tab for one, was not in it when it was given.
      const is_signed = url.endsWith(written) && more.length === 0 && isSame(given, signatureOf(signed));
      const integer = (name: string) => Number(searchParams.get(name));
      if (!is_signed || clock.now().getTime() > integer('expires'))
        throw new ServiceError('UPLOAD_SIGNATURE_INVALID', {});
      return {
        upload_id: pathname.slice('/uploads/'.length),
        file_number: integer('file'),
        part_number: integer('part'),
        path: searchParams.get('path') ?? '',
        byte_offset: integer('offset'),
        content_length: integer('length'),
      };
    },
  };
}

/** Takes the same time wherever the texts differ. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
