import { paths } from '../paths.ts';
import { describeReceipt, type Receipt } from '../receipt.ts';
import { Session, type SharedOptions } from '../session.ts';

/** Explains a decision of the matchmaker: the seat or the refusal, and why other lobbies were not chosen. */
export async function why(ray_id: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const answer = await session.api.get<{ receipt: Receipt }>(`${paths.receipts(await session.scope())}/${ray_id}`);
  session.show(answer, (output) => describeReceipt(answer.receipt).forEach(output.line));
}
