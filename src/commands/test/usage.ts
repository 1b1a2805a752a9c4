/** The help of `muster test`. */
export const USAGE = `Usage: muster test [--deploy] -- COMMAND [ARGUMENT...]

Runs a command, such as "bun test", with a Muster of its own: a throwaway service with an empty game, without rate limits.
Ends with the command's exit code. Afterwards no process, port or data is left, not even of the command.

  --deploy  deploy the game of this folder (muster.yaml) first

The command gets these variables:

  MUSTER_URL         the address of the service
  MUSTER_TOKEN       the administrator's token
  MUSTER_GAME        the id of the game
  MUSTER_NAMESPACE   the id of its namespace prod
  MUSTER_TEST_CLOCK  an address that moves the clock of the service: POST {"advance_ms": 60000}

From the environment, the service takes MUSTER_ settings of rules and times, such as MUSTER_SEAT_TIMEOUT_MS, and ignores those
of addresses, data and databases.`;
