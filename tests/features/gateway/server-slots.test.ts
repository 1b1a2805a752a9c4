import { heapStats } from 'bun:jsc';
import { describe, expect, test } from 'bun:test';
import { ServerSlots, SlotsOfServers } from '../../../src/features/gateway/server-slots.ts';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { Slots } from '../../../src/platform/limits/slots.ts';
import { refusalOf } from '../../support/refusal.ts';
import { waitFor } from '../../support/wait.ts';

const MANY = { open_max: 1_000, open_of_address_max: 1_000, opened_per_second_max: 1_000 };
const [GAME, OTHER, THIRD] = ['a game', 'another game', 'a third game'];

/** Takes slots for the clients of a new server until none is left. Returns the functions that free them. */
function takeAll(slots: Slots, game_id: string) {
  const of_server = new ServerSlots(MANY, slots, game_id);
  const releases: (() => void)[] = [];
  for (;;) {
    const free = of_server.take(`192.0.2.${releases.length}`);
    if (!free) return releases;
    releases.push(free);
  }
}

describe('slots: slots that games share', () => {
  test('one game gets at most half of the slots with all of its servers, so others still get some', () => {
    const slots = new Slots(12);
    expect(takeAll(slots, GAME)).toHaveLength(6);
    expect(takeAll(slots, GAME)).toHaveLength(0);
    expect(takeAll(slots, OTHER)).toHaveLength(3);
    expect(takeAll(slots, THIRD)).toHaveLength(2);
  });

  test('a game gets the slots that its own clients and those of others free', () => {
    const slots = new Slots(12);
    const game_releases = takeAll(slots, GAME);
    const other_releases = takeAll(slots, OTHER);
    for (const free of other_releases) free();
    expect(takeAll(slots, GAME)).toHaveLength(0);
    for (const free of game_releases) free();
    for (const free of game_releases) free();
    expect(slots.taken).toBe(0);
    expect(takeAll(slots, OTHER)).toHaveLength(6);
  });

  test('a lower limit of the server stays', () => {
    const of_server = new ServerSlots({ ...MANY, open_max: 1 }, new Slots(12), GAME);
    expect(of_server.take('192.0.2.1')).toBeFunction();
    expect(of_server.take('192.0.2.2')).toBeUndefined();
  });

  test('a refusal says whether the game has too many, or the server and the address', () => {
    const slots_of_servers = new SlotsOfServers({ ...MANY, open_of_address_max: 1 }, new Slots(4));
    const take = (server_id: string, address: string) => slots_of_servers.take({ server_id, game_id: GAME }, address);
    const refusal = (server_id: string, address: string) => {
      const { code, retry_after_ms } = refusalOf(ServiceError, () => take(server_id, address));
      return [code, retry_after_ms];
    };
    take('a server', '192.0.2.1');
    expect(refusal('a server', '192.0.2.1')).toEqual(['GATEWAY_TOO_MANY_CONNECTIONS', 1_000]);
    take('another server', '192.0.2.1');
    expect(refusal('another server', '192.0.2.2')).toEqual(['GATEWAY_GAME_BUSY', 1_000]);
  });
});

describe('slots: of a server', () => {
  test('is there while a connection is open, and until the second of its last one is over', async () => {
    const slots_of_servers = new SlotsOfServers({ ...MANY, open_of_address_max: 1 }, new Slots(1_000));
    const take = (server_id: string) => slots_of_servers.take({ server_id, game_id: GAME }, '192.0.2.1');
    take('a busy server');
    take('a server')();
    expect(slots_of_servers.server_count).toBe(2);
    await waitFor(() => {
      take('another server')();
      return slots_of_servers.server_count === 2;
    }, 'the slots of the unused server to be deleted');
    expect(refusalOf(ServiceError, () => take('a busy server')).code).toBe('GATEWAY_TOO_MANY_CONNECTIONS');
  });

  test('takes little memory, with the count of its bytes', () => {
    const traffic = createTraffic({
      limits: { is_on: true, scale: 1 },
      bytes_a_minute: { of_server: 1, of_address: 1 },
    });
    const slots_of_servers = new SlotsOfServers(MANY, new Slots(10_000));
    const measure = () => {
      Bun.gc(true);
      const { heapSize, extraMemorySize } = heapStats();
      return heapSize + extraMemorySize;
    };
    const before = measure();
    const kept = Array.from({ length: 1_000 }, (_, number) => [
      slots_of_servers.take({ server_id: `server ${number}`, game_id: GAME }, '192.0.2.1'),
      traffic.ofServer(`server ${number}`).ofClient('192.0.2.1'),
    ]);
    expect((measure() - before) / kept.length).toBeLessThan(20_000);
  });
});
