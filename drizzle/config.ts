import { defineConfig } from 'drizzle-kit';

/** `bunx drizzle-kit generate --config drizzle/config.ts --name what-changes` writes the next migration. */
export default defineConfig({
  dialect: 'postgresql',
  schema: ['./src/features/*/tables.ts', './src/platform/*/tables.ts'],
  out: './drizzle',
});
