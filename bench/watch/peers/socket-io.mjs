// Socket.IO on Node, over WebSocket alone: what is published is emitted to all.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Server } from 'socket.io';

const [frame] = process.argv.slice(2);
let number = 0;
const bodyOf = () => JSON.parse(frame.replace('NUMBER', number));
const http = createServer();
const server = new Server(http, { transports: ['websocket'], perMessageDeflate: false });
server.on('connection', (socket) => socket.emit('body', bodyOf()));
http.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => console.log(http.address().port));

for await (const line of createInterface({ input: process.stdin })) {
  number = line.split(' ')[2];
  server.emit('body', bodyOf());
}
process.exit();
