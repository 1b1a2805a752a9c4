import { describe, expect, test } from 'bun:test';
import { readSocketLabels, toAddress, toSocketUrl } from '../../src/shared/ports.ts';

const PLAYER = { token: 'player.abc' };
const RANGE = { min: 20_000, max: 20_010 };

describe('ports', () => {
  test('an address has a port or a range, and brackets around IPv6; without a host or a number there is none', () => {
    expect(toAddress({ hostname: '203.0.113.5', port: 20_000 })).toBe('203.0.113.5:20000');
    expect(toAddress({ hostname: '203.0.113.5', port: null, port_range: RANGE })).toBe('203.0.113.5:20000-20010');
    expect(toAddress({ hostname: '2001:db8::5', port_range: RANGE })).toBe('[2001:db8::5]:20000-20010');
    expect(toAddress({ hostname: '[2001:db8::5]', port: 80 })).toBe('[2001:db8::5]:80');
    expect(toAddress({ hostname: '203.0.113.5', port: null })).toBeUndefined();
    expect(toAddress({ port_range: RANGE })).toBeUndefined();
  });

  test('the ports that take a WebSocket are those of http and https in the settings that the game mode uses', () => {
    const ports = { game: {}, voice: { protocol: 'udp' }, web: { protocol: 'http' }, wire: { protocol: 'tcp_tls' } };
    const own = { docker: { ports: { other: { protocol: 'https' } } } };
    const matchmaker = { docker: { ports }, game_modes: { common: {}, own, none: { docker: {} } } };
    expect(readSocketLabels(matchmaker, 'common')).toEqual(['game', 'web']);
    expect(readSocketLabels(matchmaker, 'own')).toEqual(['other']);
    expect(readSocketLabels(matchmaker, 'none')).toEqual([]);
    expect(readSocketLabels(undefined, 'common')).toEqual([]);
  });

  test('a bot connects to the first port of those, and to no range', () => {
    const range = { hostname: '203.0.113.5', port: null, port_range: RANGE, is_tls: false };
    const voice = { hostname: '203.0.113.5', port: 20_020, is_tls: false };
    const game = { hostname: 'game.example', port: 443, is_tls: true };
    const seat = { ports: { range, voice, game }, player: PLAYER };
    const url = 'wss://game.example:443/?token=player.abc&player_token=player.abc';
    expect(toSocketUrl(seat, ['game'])).toBe(url);
    expect(toSocketUrl(seat, ['game', 'range'])).toBe(url);
    expect(toSocketUrl(seat, [])).toBeUndefined();
    expect(toSocketUrl(seat, ['another'])).toBeUndefined();
  });
});
