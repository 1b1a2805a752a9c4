import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { decode, encode } from 'dns-packet';

export type RecordType = 'A' | 'AAAA' | 'TXT';

/** A name server, and its client. */
export interface NameServer extends Disposable {
  /** Its address and port, as in settings. */
  address: string;
  /** Returns the number of questions that it received for a name. */
  questionCount(name: string, type: RecordType): number;
  /** Returns the addresses of a name; rejects if it has none. */
  resolve(name: string): Promise<string[]>;
}

/**
 * Opens a name server. `answer`: the addresses or texts of a name for the `count`th question, from 0; undefined: none.
 */
export async function openNameServer(
  answer: (name: string, type: RecordType, count: number) => string[] | undefined,
): Promise<NameServer> {
  const counts = new Map<string, number>();
  const socket = createSocket('udp4');
  socket.on('message', (message, { port, address }) => {
    const { id, questions = [] } = decode(message);
    const [question] = questions;
    if (!question || !isKnown(question.type)) return;
    const { name, type } = question;
    const count = counts.get(`${name} ${type}`) ?? 0;
    counts.set(`${name} ${type}`, count + 1);
    const answers = (answer(name, type, count) ?? []).map((data) => ({ type, name, ttl: 0, data }) as const);
    socket.send(encode({ type: 'response', id: id ?? 0, questions, answers }), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questionCount: (name, type) => counts.get(`${name} ${type}`) ?? 0,
    async resolve(name) {
      const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      const addresses = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      if (addresses.length === 0) throw new Error(`${name} has no address`);
      return addresses;
    },
    [Symbol.dispose]: () => void socket.close(),
  };
}

function isKnown(type: string): type is RecordType {
  return type === 'A' || type === 'AAAA' || type === 'TXT';
}
