import { normalizeAddress } from '../../networks.ts';
import { Registry, type Slot } from '../../registry.ts';

/** The client's end of a connection. */
export interface Peer {
  address: string;
  port: number;
}

interface Connected {
  requestIP(request: Request): Peer | null;
}

/** A request in progress, and the server that received it. */
interface ReceivedRequest {
  request: Request;
  server: Connected | null;
}

// Module state, because descriptors belong to the process. The address of a request is read only when connections must be
// closed, because that takes a system call.
const requests = new Registry<ReceivedRequest>();
const answers = new Registry<ReceivedRequest>();
const sockets = new Map<object, string>();

/** Notes that a request is in progress, until {@link noteRequestEnd}. */
export function noteRequest(request: Request, server: Connected | null): Slot<ReceivedRequest> {
  return requests.add({ request, server });
}

export function noteRequestEnd(noted: Slot<ReceivedRequest>): void {
  requests.remove(noted);
}

/**
 * Notes that the answer to a request may go on for long, and be silent, after it has begun, until {@link noteAnswerEnd}. The
 * request itself counts as in progress only until its answer begins.
 */
export function noteAnswer(request: Request, server: Connected | null): Slot<ReceivedRequest> {
  return answers.add({ request, server });
}

export function noteAnswerEnd(noted: Slot<ReceivedRequest>): void {
  answers.remove(noted);
}

/** Notes that the connection of a request becomes a WebSocket, until {@link noteSocketEnd}. */
export function noteSocket(socket: object, request: Request, server: Connected): void {
  const peer = server.requestIP(request);
  if (peer) sockets.set(socket, nameOf(peer));
}

/** Notes that a WebSocket no longer uses its connection. */
export function noteSocketEnd(socket: object): void {
  sockets.delete(socket);
}

/** Returns how many requests and WebSockets are in progress. */
export function countInUse(): { requests: number; sockets: number } {
  return { requests: requests.size, sockets: sockets.size };
}

/** Returns a function that checks whether a request, its answer or a WebSocket uses a connection now. */
export function readConnectionsInUse(): (peer: Peer) => boolean {
  const names = new Set(sockets.values());
  for (const { request, server } of [...requests.list(), ...answers.list()]) {
    const peer = server?.requestIP(request);
    if (peer) names.add(nameOf(peer));
  }
  return (peer) => names.has(nameOf(peer));
}

function nameOf({ address, port }: Peer): string {
  return `${normalizeAddress(address) ?? address} ${port}`;
}
