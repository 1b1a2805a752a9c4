import { type Static, Type } from '@sinclair/typebox';
import { StartError } from '../errors.ts';

/** A bucket, and the credentials for it. */
export interface S3Settings {
  /** Scheme, host and port. */
  endpoint: string;
  bucket: string;
  region: string;
  access_key_id: string;
  secret_access_key: string;
  /** Prefix of all keys: empty, or with a trailing slash. */
  prefix: string;
  /** Whether the bucket's name is part of the host instead of the path. */
  is_virtual_hosted: boolean;
}

/** Returns the location of a bucket's objects for operators, without secrets. */
export function locationOfBucket({ endpoint, bucket, prefix }: S3Settings): string {
  return `${endpoint}/${bucket}/${prefix}`;
}

const FOLDER = '[A-Za-z0-9][A-Za-z0-9._-]*';

/** The service's settings for object storage. */
export const S3_SHAPES = {
  S3_ENDPOINT: Type.Optional(
    Type.String({
      pattern: '^https?://[^/?#@]+/?$',
      expected: 'an address like https://s3.example.com, without a path',
      description:
        'Object storage (S3) to use instead of the data directory, like https://s3.eu-central-1.amazonaws.com.',
    }),
  ),
  S3_BUCKET: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
      expected: '3 to 63 lower-case letters, digits, dots and dashes, with a letter or digit at both ends',
      description: 'Bucket in the object storage; it must exist.',
    }),
  ),
  S3_ACCESS_KEY_ID: Type.Optional(
    Type.String({
      pattern: '^[!-~]+$',
      expected: 'visible ASCII characters, without blanks',
      description: 'Access key with the rights to list, read, write and delete in the bucket.',
    }),
  ),
  S3_SECRET_ACCESS_KEY: Type.Optional(
    Type.String({
      pattern: '^[!-~]+$',
      expected: 'visible ASCII characters, without blanks',
      description: 'Secret of the access key.',
    }),
  ),
  S3_REGION: Type.String({
    default: 'us-east-1',
    pattern: '^[A-Za-z0-9-]+$',
    expected: 'letters, digits and dashes',
    description: 'Region of the bucket, if the storage has regions.',
  }),
  S3_PREFIX: Type.Optional(
    Type.String({
      pattern: `^${FOLDER}(/${FOLDER})*/?$`,
      expected: 'names of folders like games or games/muster',
      description: 'Folder in the bucket to store all objects in.',
    }),
  ),
  S3_ADDRESSING: Type.Union([Type.Literal('path'), Type.Literal('host')], {
    default: 'path',
    description:
      'Whether the name of the bucket is in the path or in the host (virtual-hosted style) of addresses: path or host.',
  }),
};

const Shape = Type.Object(S3_SHAPES);

/** Reads the settings of the object storage; undefined if none is set. Throws StartError if only some are set. */
export function readS3Settings(
  settings: Static<typeof Shape>,
  environment: Record<string, string | undefined>,
): S3Settings | undefined {
  const { S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = settings;
  const needed = { S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
  if (missing.length === Object.keys(needed).length) return undefined;
  if (!S3_ENDPOINT || !S3_BUCKET || !S3_ACCESS_KEY_ID || !S3_SECRET_ACCESS_KEY) {
    throw new StartError(
      `The settings of the object storage are incomplete: set ${missing.join(' and ')} too, or none of S3_ENDPOINT, S3_BUCKET and the keys.`,
    );
  }
  if (!URL.canParse(S3_ENDPOINT)) {
    throw new StartError(
      `S3_ENDPOINT is "${S3_ENDPOINT}": expected an address like https://s3.eu-central-1.amazonaws.com.`,
    );
  }
  // Bun's client reads the session token by itself, and would send it along with the key.
  const token = ['S3_SESSION_TOKEN', 'AWS_SESSION_TOKEN'].find((name) => environment[name]);
  if (token) {
    throw new StartError(
      `${token} is set, but a temporary key would expire while the service runs: unset it, and use a permanent key.`,
    );
  }
  return {
    endpoint: S3_ENDPOINT.replace(/\/$/, ''),
    bucket: S3_BUCKET,
    region: settings.S3_REGION,
    access_key_id: S3_ACCESS_KEY_ID,
    secret_access_key: S3_SECRET_ACCESS_KEY,
    prefix: settings.S3_PREFIX === undefined ? '' : `${settings.S3_PREFIX.replace(/\/$/, '')}/`,
    is_virtual_hosted: settings.S3_ADDRESSING === 'host',
  };
}
