// No tables of its own: these are rows of PostgreSQL's views of itself.

/** What PostgreSQL has open, of all programs. */
export interface DatabaseLoad {
  connections: number;
  /** Those that programs without special rights may open. */
  connections_max: number;
  /** For how long the oldest transaction of this database is open, in milliseconds. 0 without any. */
  oldest_transaction_ms: number;
}

/** The server and this database. */
export interface DatabaseServerRow {
  version: string;
  start_ts: Date;
  size_bytes: number;
  is_standby: boolean;
  is_read_only: boolean;
}

export interface OpenTransactionRow {
  begin_ts: Date;
  program: string;
  state: string;
}

/** The connections of a program from an address. */
export interface ProgramRow {
  name: string;
  /** Null for a socket of the machine. */
  address: string | null;
  connections: number;
  active: number;
  in_transaction: number;
}

export interface TableRow {
  name: string;
  size_bytes: number;
  rows: number;
  dead_rows: number;
  /** Null if dead rows were never removed. */
  vacuum_ts: Date | null;
}

export interface ReplicaRow {
  name: string;
  address: string | null;
  state: string;
  /** Null if the user may not see it. */
  lag_bytes: number | null;
}
