// Colyseus on Node: one room that all are in, which broadcasts what is published.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Room, Server } from '@colyseus/core';
import { WebSocketTransport } from '@colyseus/ws-transport';

const [frame] = process.argv.slice(2);
let number = 0;
let room;
const textOf = () => frame.replace('NUMBER', number);

class BenchRoom extends Room {
  onCreate() {
    this.maxClients = Number.POSITIVE_INFINITY;
    this.seatReservationTime = 60;
    room = this;
  }
  onJoin(client) {
    client.send('body', textOf());
  }
}

const http = createServer();
const transport = new WebSocketTransport({ server: http });
const server = new Server({ transport, greet: false });
server.define('room', BenchRoom);
await server.listen(0, '127.0.0.1');
console.log(http.address().port);

for await (const line of createInterface({ input: process.stdin })) {
  number = line.split(' ')[2];
  room.broadcast('body', textOf());
}
process.exit();
