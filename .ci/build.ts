// Makes dist/muster: one executable that carries the program, PostgreSQL, the migrations, the examples, the
// client and the documents.
// Never --minify: Elysia reads the text of its handlers (docs/decisions/0002).
import { existsSync } from 'node:fs';
import { $ } from 'bun';
import { POSTGRES_ARCHIVE, packPostgres } from '../src/platform/database/postgres-files.ts';
import { versionOf } from './version.ts';

/** Where `own-program.ts` finds it. */
const LAUNCHER = 'dist/launch.js';

if (!existsSync(POSTGRES_ARCHIVE)) await packPostgres(POSTGRES_ARCHIVE);

// The launcher of game servers runs from a file, which starts in half the time of the whole program.
await $`bun build --target=bun src/launch.ts --outfile ${LAUNCHER}`;

const pages = ['src/features/devices/link-page.html'];
const carried = ['drizzle', 'examples', 'src/client', 'docs/openapi.json', ...pages, LAUNCHER, POSTGRES_ARCHIVE].map(
  (path) => `--asset=${path}`,
);
const version = `MUSTER_BUILD_VERSION=${JSON.stringify(await versionOf('.'))}`;
await $`bun build --compile --bytecode --format=esm --sourcemap=inline --no-compile-autoload-dotenv --no-compile-autoload-bunfig --define ${version} ${carried} src/main.ts --outfile dist/muster`;
