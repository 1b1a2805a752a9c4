/** What the help says about a command of this machine. Other systems have it too, although they cannot load the command. */
interface Usage {
  /** The command as it is written, without "muster". */
  synopsis: string;
  /** One line, for the list of all commands. */
  summary: string;
  /** The rest of its own help. */
  details: string;
}

const DATABASE_EXIT_CODES =
  'Exit codes: 0 done, 1 refused or failed, 2 wrong use, 130 stopped by a signal such as ctrl-C.';

/** The help of each command of this machine, in the order of the list. */
const USAGES: Record<string, Usage> = {
  serve: {
    synopsis: 'serve',
    summary: 'starts the service (the default)',
    details: `Serves until it is stopped. SIGTERM and SIGHUP leave game servers running, and the next start finds them.
ctrl-C ends them first; ctrl-C again exits at once.

Settings: all that "muster --help" lists.
Exit codes: 0 stopped, 1 did not start, or did not stop in time, 2 wrong use, 130 a second ctrl-C.`,
  },
  migrate: {
    synopsis: 'migrate [--json]',
    summary: 'updates the database to this release, then exits',
    details: `Does what the first start of this release would do to the database, for example before several
processes start. With a database that is up to date, it changes nothing.

Settings: MUSTER_DATA and DATABASE_URL. The data directory must not be that of a running service.
${DATABASE_EXIT_CODES}`,
  },
  backup: {
    synopsis: 'backup FILE [--json]',
    summary: 'writes the database, uploaded files and keys to one file; the service may run',
    details: `FILE must not exist yet. It has the database of one moment and all files that it names, and only its
user can read it. It contains secret keys, so keep it like a password.

Settings: MUSTER_DATA, DATABASE_URL and those of the bucket, as for "muster serve".
${DATABASE_EXIT_CODES}`,
  },
  restore: {
    synopsis: 'restore FILE [--json]',
    summary: 'restores a backup where there is no data yet',
    details: `Checks the whole FILE first. Fills an empty data directory, or an empty database and bucket, and never
overwrites data. A restore that was stopped can be repeated. Then start "muster serve".

Settings: MUSTER_DATA, DATABASE_URL and those of the bucket, as for the new "muster serve".
${DATABASE_EXIT_CODES}`,
  },
  upgrade: {
    synopsis: 'upgrade --check [--json]',
    summary: 'says with --check whether this release can use the database; upgrades nothing',
    details: `To upgrade, stop "muster serve", and start the new executable with the same data. Before that, run
"muster upgrade --check" of the new executable: it changes nothing, and the service may run.

Settings: MUSTER_DATA and DATABASE_URL, as for "muster serve".
${DATABASE_EXIT_CODES}`,
  },
  test: {
    synopsis: 'test [--deploy] -- COMMAND [ARGUMENT...]',
    summary: 'runs a command, such as a test suite, with a throwaway service',
    details: `The service has an empty game and no rate limits. Afterwards no process, port or data is left, not even of
the command; only PostgreSQL stays prepared in a cache (~/.cache/muster or /var/cache/muster).

  --deploy  deploy the game of this folder (muster.yaml) first

The command gets these variables:

  MUSTER_URL         the address of the service
  MUSTER_TOKEN       the administrator's token
  MUSTER_GAME        the id of the game
  MUSTER_NAMESPACE   the id of its namespace prod
  MUSTER_TEST_CLOCK  an address that moves the clock of the service: POST {"advance_ms": 60000}

Settings: those of rules and times, such as MUSTER_SEAT_TIMEOUT_MS. It ignores those of addresses, data
and databases.
Exit codes: that of COMMAND; 1 the service did not start; 2 wrong use; 126 or 127 COMMAND cannot be run
or was not found; of a signal, 128 and its number.`,
  },
  openapi: {
    synopsis: 'openapi',
    summary: 'prints the API document (OpenAPI 3.1)',
    details: 'A service has the same document at /openapi.json.',
  },
  version: {
    synopsis: 'version [--json]',
    summary: 'prints the version',
    details: 'The flags --version and -v print it, too.',
  },
};

/** Returns the help of a command of this machine; undefined for another command. */
export function usageOf(name: string): string | undefined {
  const usage = Object.hasOwn(USAGES, name) ? USAGES[name] : undefined;
  if (!usage) return undefined;
  const { synopsis, summary, details } = usage;
  return `Usage: muster ${synopsis}\n\n${summary.charAt(0).toUpperCase()}${summary.slice(1)}.\n\n${details}`;
}

/** Returns the commands of this machine for a list: as they are written without options, and what they do. */
export function listUsages(): [command: string, summary: string][] {
  return Object.entries(USAGES).map(([name, { synopsis, summary }]) => [
    synopsis.includes(' FILE') ? `${name} FILE` : name,
    summary,
  ]);
}

export const listUsageNames = (): string[] => Object.keys(USAGES);
