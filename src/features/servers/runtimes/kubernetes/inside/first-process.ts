import { readCgroupUsage } from '../../../../../platform/system/cgroups.ts';
import { createOutputFiles } from '../../output/output-files.ts';
import type { Call, Piece, ServerOrder } from '../pod-messages.ts';
import { HolderConnection } from './holder-connection.ts';
import { OWN_GROUPS, outputOf, readSizes, ServerProgram } from './server-program.ts';

/** How often the size of the output is reported. */
const STATE_EVERY_MS = 100;
const REMOVE_ENDED_EVERY_MS = 5_000;
/** Time for the holder to read the last output. Then the container ends, so that a lost holder keeps no room. */
const UNREAD_MAX_MS = 3_600_000;
/** Time for the last answer to be sent. */
const LAST_ANSWER_MS = 50;

/**
 * Runs the program of a server as the first process of its container: passes signals on, keeps its output until the holder
 * has read it, and reports how it ended. Returns the exit code of the container.
 */
export async function runFirstProcess(order: ServerOrder): Promise<number> {
  // It kills all processes that it sees, which must be those of a container.
  if (process.pid !== 1) throw new Error('this command runs only as the first process of a pod that Muster created');
  const files = createOutputFiles();
  const program = new ServerProgram(order);
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();

  async function read({ stream, from, ...limits }: Extract<Call, { do: 'read' }>): Promise<Piece> {
    const { bytes, ...piece } = await files.read(outputOf(stream), { from, ...limits });
    const { skipped_bytes, has_more, written = [] } = piece;
    const start = Number(piece.resumeAfter(0));
    return { bytes: Buffer.from(bytes).toString('base64'), start, skipped_bytes, has_more, written: [...written] };
  }

  const connection = new HolderConnection({
    order,
    readState: () => ({ sizes: readSizes(), end: program.end }),
    async perform(call) {
      switch (call.do) {
        case 'read':
          return await read(call);
        case 'usage':
          return readCgroupUsage(OWN_GROUPS) ?? { cpu_ms: 0 };
        case 'stop':
          program.stop();
          return {};
        case 'kill':
          await program.kill();
          return {};
        case 'leave':
          leave();
          return {};
      }
    },
  });

  // The cluster ends the pod, for example because its node is drained, by the stop signal of Muster's image or by SIGTERM.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => program.stop());
  void connection.keepOpen();
  const sending = setInterval(() => connection.sendState(), STATE_EVERY_MS);
  const removing = setInterval(() => program.removeEnded(), REMOVE_ENDED_EVERY_MS);
  await program.ended;
  connection.sendState();
  await Promise.race([left, Bun.sleep(UNREAD_MAX_MS)]);
  clearInterval(sending);
  clearInterval(removing);
  await Bun.sleep(LAST_ANSWER_MS);
  return program.container_code;
}
