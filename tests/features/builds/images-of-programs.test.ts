import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { UNTOUCHED, unpackContainer } from '../../support/runtimes/images.ts';

const IS_ROOT = process.getuid?.() === 0;

/** What `umoci unpack` makes of the image that `data/make.sh` builds, but without setuid and the device. */
const TREE = {
  bin: 'folder 755',
  'bin/again': 'file 755',
  'bin/raised': 'file 755',
  'bin/server': 'file 755',
  etc: 'folder 755',
  'etc/passwd': 'file 644',
  lib: 'folder 755',
  'lib/x': 'file 644',
  tmp: 'folder 1777',
  usr: 'folder 755',
  'usr/lib': 'folder 755',
  'usr/lib/link': 'link to /etc/passwd',
  'usr/lib/map': 'file 644',
  var: 'folder 755',
  'var/old': 'folder 755',
  'var/old/2': 'file 644',
};

test.each([
  ['skopeo writes for Docker, in lz4 with linked blocks', 'docker_image', 'docker-archive.tar.lz4'],
  ['skopeo writes in the OCI layout, with layers in zstd', 'docker_image', 'oci-archive.tar.gz'],
  ['umoci unpacks, as clients of Rivet send it', 'oci_bundle', 'oci-bundle.tar.gz'],
] as const)('images: what %s is unpacked', async (_, kind, name) => {
  const archive = await Bun.file(join(import.meta.dir, 'data', name)).bytes();
  const { refusal, tree, contents, owners, config, outside } = await unpackContainer(archive, { kind });
  expect(refusal).toBeUndefined();
  expect(tree).toEqual(TREE);
  expect(contents).toMatchObject({ 'usr/lib/map': 'one\n', 'lib/x': 'x\n', 'var/old/2': 'new\n' });
  if (IS_ROOT) expect(owners).toMatchObject({ 'usr/lib/map': '1000:1000', 'lib/x': '0:0' });
  expect(config?.process).toMatchObject({
    args: ['/bin/server', '--fast'],
    cwd: '/tmp',
    user: { uid: 1000, gid: 1000 },
  });
  expect(config?.process.env).toContain('A=1');
  expect(config?.process.env).toContain('HOME=/home/game');
  expect(outside).toEqual(UNTOUCHED);
});
