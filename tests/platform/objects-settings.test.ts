import { describe, expect, test } from 'bun:test';
import { readConfig } from '../../src/config.ts';
import { StartError } from '../../src/platform/errors.ts';
import { refusalOf } from '../support/refusal.ts';

const SECRET = 'hunter2';
const NEEDED = {
  S3_ENDPOINT: 'https://s3.example.com/',
  S3_BUCKET: 'my-bucket',
  S3_ACCESS_KEY_ID: 'key',
  S3_SECRET_ACCESS_KEY: SECRET,
};
type Name = keyof typeof NEEDED;

const refusal = (settings: Record<string, string>): string => {
  const { message } = refusalOf(StartError, () => readConfig(settings));
  expect(message).not.toContain(SECRET);
  return message;
};

describe('the settings of an object storage', () => {
  test.each(Object.keys(NEEDED) as Name[])('are refused without %s, and with it alone', (name) => {
    const { [name]: value, ...others } = NEEDED;
    expect(refusal(others)).toBe(
      `The settings of the object storage are incomplete: set ${name} too, or none of S3_ENDPOINT, S3_BUCKET and the keys.`,
    );
    const missing = Object.keys(others).join(' and ');
    expect(refusal({ [name]: value })).toContain(`set ${missing} too`);
    expect(refusal({ ...NEEDED, [name]: '' })).toContain(`set ${name} too`);
  });

  test('are refused with an invalid address', () => {
    expect(refusal({ ...NEEDED, S3_ENDPOINT: 'https://s3.example.com:99999' })).toBe(
      'S3_ENDPOINT is "https://s3.example.com:99999": expected an address like https://s3.eu-central-1.amazonaws.com.',
    );
  });

  test.each(['S3_SESSION_TOKEN', 'AWS_SESSION_TOKEN'])(
    'are refused together with %s, which would be sent too',
    (name) => {
      expect(refusal({ ...NEEDED, [name]: SECRET })).toStartWith(`${name} is set, but `);
      expect(readConfig({ [name]: SECRET }).s3).toBeUndefined();
    },
  );

  test('have a region, no folder and the bucket in the path by default', () => {
    const s3 = {
      endpoint: 'https://s3.example.com',
      bucket: 'my-bucket',
      region: 'us-east-1',
      access_key_id: 'key',
      secret_access_key: SECRET,
      prefix: '',
      is_virtual_hosted: false,
    };
    expect(readConfig(NEEDED).s3).toEqual(s3);
    const more = { S3_REGION: 'eu-central-1', S3_PREFIX: 'a/b', S3_ADDRESSING: 'host' };
    const expected = { ...s3, region: 'eu-central-1', prefix: 'a/b/', is_virtual_hosted: true };
    expect(readConfig({ ...NEEDED, ...more }).s3).toEqual(expected);
    expect(readConfig({ ...NEEDED, ...more, S3_PREFIX: 'a/b/' }).s3).toEqual(expected);
    expect(readConfig({ S3_REGION: 'eu-central-1', S3_PREFIX: 'a' }).s3).toBeUndefined();
  });
});
