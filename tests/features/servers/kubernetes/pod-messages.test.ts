import { expect, test } from 'bun:test';
import { PodConnection } from '../../../../src/features/servers/runtimes/kubernetes/pod-connection.ts';
import { Usage } from '../../../../src/features/servers/runtimes/kubernetes/pod-messages.ts';
import { refusalOf } from '../../../support/refusal.ts';

const sizes = { std_out: 0, std_err: 0 };
const stateWith = (end: object) =>
  JSON.stringify({ state: { sizes, end: { exit_code: 0, exit_signal: null, ...end } } });

function openConnection() {
  const sent: string[] = [];
  const connection = new PodConnection({ send: (text) => sent.push(String(text)), close() {} });
  return { connection, sent };
}

test('pods: a program that sends in the name of its pod adds nothing to what a pod may say', async () => {
  const { connection, sent } = openConnection();
  connection.receive(stateWith({ is: 'unreachable', is_disruption: true }));
  expect(connection.end).toEqual({ exit_code: 0, exit_signal: null });

  const reading = connection.call(Usage, { do: 'usage' });
  const { call } = JSON.parse(sent[0] ?? '');
  connection.receive(JSON.stringify({ answer: call, result: { cpu_ms: 1, received_bytes: 1e300 } }));
  expect(await reading).toEqual({ cpu_ms: 1 });
});

test('pods: a reason that the database cannot store is refused', () => {
  const { connection } = openConnection();
  expect(refusalOf(Error, () => connection.receive(stateWith({ reason: 'a\0b' }))).message).toContain('unknown shape');
  connection.receive(stateWith({ reason: 'it left\nearly' }));
  expect(connection.end?.reason).toBe('it left\nearly');
});
