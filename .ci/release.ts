// Makes a release: an archive for each target, and SHA256SUMS with the checksums of all, in dist/release or the directory
// that is named. `sha256sum -c SHA256SUMS` checks them.
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import { compile, makeCarried, TARGETS } from './compile.ts';
import { versionOf } from './version.ts';

const [directory = 'dist/release'] = process.argv.slice(2);
const version = await versionOf('.');
await rm(directory, { recursive: true, force: true });
await mkdir(directory, { recursive: true });
await makeCarried();

const programs = await mkdtemp(join(tmpdir(), 'muster-release-'));
const sums: string[] = [];
try {
  for (const target of TARGETS) {
    const file = target.name.startsWith('windows') ? 'muster.exe' : 'muster';
    const program = join(programs, target.name, file);
    await compile(target, { version, outfile: program });
    const name = `muster-${version}-${target.name}`;
    const archive = `${name}.tar.gz`;
    await packProgram(program, { entry: `${name}/${file}`, archive: join(directory, archive) });
    sums.push(`${await digestOf(join(directory, archive))}  ${archive}`);
  }
} finally {
  await rm(programs, { recursive: true, force: true });
}
await Bun.write(join(directory, 'SHA256SUMS'), `${sums.join('\n')}\n`);
console.log(`${sums.join('\n')}\nin ${directory}`);

/** Packs a program into an archive, which is the same for the same program. */
async function packProgram(program: string, { entry, archive }: { entry: string; archive: string }): Promise<void> {
  const tar = pack();
  const { size } = await stat(program);
  const content = tar.entry({ name: entry, size, mode: 0o755, mtime: new Date(0) });
  const written = pipeline(tar, createGzip(), createWriteStream(archive));
  await pipeline(createReadStream(program), content);
  tar.finalize();
  await written;
}

async function digestOf(file: string): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256');
  for await (const bytes of Bun.file(file).stream()) hash.update(bytes);
  return hash.digest('hex');
}
