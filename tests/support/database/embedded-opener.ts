import { openEmbeddedPostgres } from '../../../src/platform/database/embedded.ts';

// A process that opens the embedded PostgreSQL, prints its process id, and stays until it is killed.
const [directory = '', programs_directory = '', is_durable] = process.argv.slice(2);
await openEmbeddedPostgres({
  directory,
  programs_directory,
  is_durable: is_durable === 'true',
  events: {
    emit(event) {
      if (event.event === 'database_started') console.log(event.process_id);
    },
  },
});
setInterval(() => {}, 1e9);
