import { ServiceError } from '../errors.ts';

export const SOCKET_VERSION = '13';
/** 16 bytes as Base64. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;

/** Returns whether a request asks for a WebSocket. */
export function asksForSocket({ headers }: Request): boolean {
  return headers.get('upgrade')?.toLowerCase() === 'websocket';
}

/**
 * Checks the handshake of a WebSocket (RFC 6455, 4.2.1). Throws API_BAD_SOCKET_HANDSHAKE, or
 * API_SOCKET_VERSION_NOT_SUPPORTED. Bun's upgrade would refuse the same without a reason.
 */
export function checkHandshake({ method, headers }: Request): void {
  if (method !== 'GET') {
    throw new ServiceError('API_BAD_SOCKET_HANDSHAKE', { error: `its method is ${method}. Send a GET` });
  }
  if (!KEY.test(headers.get('sec-websocket-key') ?? '')) {
    const error = 'the header Sec-WebSocket-Key is missing or wrong. Send 16 random bytes as Base64';
    throw new ServiceError('API_BAD_SOCKET_HANDSHAKE', { error });
  }
  if (headers.get('sec-websocket-version') !== SOCKET_VERSION) {
    throw new ServiceError('API_SOCKET_VERSION_NOT_SUPPORTED', {});
  }
}
