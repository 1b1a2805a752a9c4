import type { ServerSlots } from '../server-slots.ts';
import type { ServerTraffic } from '../traffic.ts';
import type { Endpoint } from './connection.ts';
import { Flow } from './flow.ts';
import { startCheckingSilence } from './silence.ts';
import type { Relay } from './tcp-relay.ts';

export interface UdpRelayOptions {
  /** Where clients send their packets. */
  listen: Endpoint;
  target: Endpoint;
  slots: ServerSlots;
  traffic: ServerTraffic;
  silence?: UdpSilence;
}

/** How long a client may be silent, and how long one that has sent one packet, whose sender may be forged. */
export interface UdpSilence {
  max_ms: number;
  after_one_packet_max_ms: number;
}

/** The first is longer than the interval of the packets that keep a player's router open. */
const SILENCE: UdpSilence = { max_ms: 60_000, after_one_packet_max_ms: 10_000 };

/**
 * Opens a UDP port that leads to a server. Each address and port of a client has a flow: a socket of its own to the server,
 * by which answers are assigned to the client. Only packets of clients begin a flow and keep it open. Throws an error with
 * the code EADDRINUSE if the port is taken.
 */
export async function openUdpRelay(options: UdpRelayOptions): Promise<Relay> {
  const { listen, target, slots, traffic: of_server, silence = SILENCE } = options;
  const flows = new Map<string, Flow>();

  function begin(key: string, address: string, port: number): Flow | undefined {
    const free = slots.take(address);
    if (!free) return undefined;
    const traffic = of_server.ofClient(address);
    const noteClosed = traffic.countOpened('connections');
    const answer = (bytes: Buffer) => send(bytes, port, address);
    const onEnd = () => {
      flows.delete(key);
      noteClosed();
      free();
    };
    const flow = new Flow({ target, traffic, answer, onEnd });
    flows.set(key, flow);
    // May fail at once, which removes the flow.
    void flow.open();
    return flow;
  }

  /** Sends to a client. A packet that the kernel refuses is lost. */
  function send(bytes: Buffer, port: number, address: string): void {
    try {
      socket.send(bytes, port, address);
    } catch {
      // The client or its network has refused an earlier packet.
    }
  }

  const socket = await Bun.udpSocket({
    ...listen,
    socket: {
      data(_, bytes, port, address) {
        const key = `${address} ${port}`;
        const flow = flows.get(key) ?? begin(key, address, port);
        flow?.receive(bytes);
      },
      // The flow of a client that refuses packets ends by silence.
      error() {},
    },
  });
  const checking = startCheckingSilence(Object.values(silence), (now) => {
    for (const flow of [...flows.values()]) {
      const max_ms = flow.received_packets > 1 ? silence.max_ms : silence.after_one_packet_max_ms;
      if (now - flow.received_at > max_ms) flow.close();
    }
  });

  return {
    count: () => flows.size,
    close() {
      clearInterval(checking);
      for (const flow of [...flows.values()]) flow.close();
      socket.close();
    },
  };
}
