// Colyseus: rooms of 100, in memory, which every client may join.
import { createServer } from 'node:http';
import { Room, Server } from '@colyseus/core';
import { WebSocketTransport } from '@colyseus/ws-transport';

class BenchRoom extends Room {
  onCreate() {
    this.maxClients = 100;
    this.seatReservationTime = 600;
  }
}

const http = createServer();
const server = new Server({ transport: new WebSocketTransport({ server: http }), greet: false });
server.define('room', BenchRoom);
await server.listen(0, '127.0.0.1');
console.log(http.address().port);

// The bench has ended, however it did.
process.stdin.on('end', () => process.exit()).resume();
