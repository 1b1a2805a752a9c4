import type { Challenge } from 'altcha-lib';

/** Explains why a proof of work cannot be solved in a browser without cryptography. */
export const NEEDS_TLS = "A proof of work needs a page over https, or a browser on the service's own machine";
/** Why bots get no seat in a browser without cryptography: on a page without TLS that is not of this machine. */
export const WITHOUT_CRYPTOGRAPHY = 'NO_PROOF_OF_WORK';

/** What the page asks of a worker: that bots play, or that it solves a proof of work. */
export type WorkerTask = BotsTask | { challenge: Challenge };

/** A solved proof of work, as requests for seats carry it. */
export interface SolvedWork {
  pow: { client_response: string };
}

/** What the page asks of the bots. */
export interface BotsTask {
  count: number;
  /** Public token of the namespace. */
  token: string;
  /** The body of each find. */
  find: object;
  /** Labels of the ports to which bots connect. */
  socket_labels: string[];
}

/** What the bots have seen so far. */
export interface BotsReport {
  /** Bots that wait for the answer to a find. */
  waiting: number;
  /** Bots that are connected to a game server now. */
  playing: number;
  /** Seats found so far. */
  seats: number;
  /** Connections to game servers so far. */
  connected: number;
  /** Seats whose lobby has no port for WebSockets. */
  without_port: number;
  /** Seats at ports without TLS to which the browser did not connect, because the page has TLS. */
  without_tls: number;
  /** Bots that hold a seat without a connection now, because the browser has no more sockets. */
  only_seated: number;
  p50_ms: number | undefined;
  p95_ms: number | undefined;
  /** Refused finds by the code of the error, with the ray id of the latest. */
  refused: Record<string, { count: number; ray_id: string | undefined }>;
  /** Lobbies whose game server a bot could not reach, the latest first. */
  unreached: string[];
  /** The latest lobbies in which a bot got a seat. */
  lobbies: string[];
}
