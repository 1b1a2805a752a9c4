// ws on Node: what is published is sent to each of its clients, as its documentation has it.
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const [frame] = process.argv.slice(2);
let number = 0;
const textOf = () => frame.replace('NUMBER', number);
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
server.on('connection', (socket) => socket.send(textOf()));
server.on('listening', () => console.log(server.address().port));

for await (const line of createInterface({ input: process.stdin })) {
  number = line.split(' ')[2];
  const text = textOf();
  for (const client of server.clients) client.send(text);
}
process.exit();
