import { S3Client } from 'bun';
import { readS3Settings, type S3Settings } from '../../../src/platform/objects/s3-settings.ts';

/** CI sets it to run tests on an S3 server, where buckets can be created: http://KEY:SECRET@HOST:PORT. */
export const TEST_S3 = process.env.MUSTER_TEST_S3;

const BUCKET = `muster-tests-${crypto.randomUUID()}`;

let is_made: Promise<void> | undefined;

/** Returns the settings of a new folder, in a bucket that a run creates once. */
export async function openTestBucket(): Promise<{ settings: Record<string, string>; parsed: S3Settings }> {
  is_made ??= makeBucket();
  await is_made;
  const settings = { ...serverSettings(), S3_BUCKET: BUCKET, S3_PREFIX: `tests/${crypto.randomUUID()}` };
  const parsed = readS3Settings({ S3_REGION: 'us-east-1', S3_ADDRESSING: 'path', ...settings }, {});
  if (!parsed) throw new Error('the server has an address');
  return { settings, parsed };
}

/** Returns the names of all objects in the folder. */
export async function listBucket(settings: S3Settings): Promise<string[]> {
  const { endpoint, bucket, region, prefix } = settings;
  const credentials = { accessKeyId: settings.access_key_id, secretAccessKey: settings.secret_access_key };
  const client = new S3Client({ endpoint, bucket, region, ...credentials });
  const names: string[] = [];
  let startAfter = '';
  for (;;) {
    const { contents = [] } = await client.list({ prefix, startAfter });
    if (contents.length === 0) return names.map((name) => name.slice(prefix.length));
    names.push(...contents.map(({ key }) => key));
    startAfter = names.at(-1) ?? '';
  }
}

function serverSettings() {
  const { origin, username, password } = new URL(TEST_S3 ?? '');
  const [S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY] = [username, password].map(decodeURIComponent) as [string, string];
  return { S3_ENDPOINT: origin, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY };
}

/** Creates a bucket, which Bun's client cannot. With the bucket in the host, the path is taken as the bucket. */
async function makeBucket(): Promise<void> {
  const { S3_ENDPOINT: endpoint, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY: secretAccessKey } = serverSettings();
  const accessKeyId = encodeURIComponent(S3_ACCESS_KEY_ID);
  const signer = new S3Client({
    endpoint,
    accessKeyId,
    secretAccessKey,
    region: 'us-east-1',
    virtualHostedStyle: true,
  });
  const response = await fetch(signer.presign(BUCKET, { method: 'PUT' }), { method: 'PUT' });
  if (!response.ok) throw new Error(`the bucket cannot be made: ${await response.text()}`);
}
