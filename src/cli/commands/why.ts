import { isUuid } from '../../shared/uuid.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { paths } from '../paths.ts';
import { describeReceipt, type Receipt } from '../receipt.ts';
import { Session, type SharedOptions } from '../session.ts';

/** Explains a decision of the matchmaker: the seat or the refusal, and why other lobbies were not chosen. */
export async function why(ray_id: string, options: SharedOptions): Promise<void> {
  if (!isUuid(ray_id)) {
    const words = `"${ray_id}" is not a ray id, which is a UUID: copy it from the header rvt-ray-id of the answer.`;
    throw new Failure(words, EXIT.wrong_use);
  }
  const session = await Session.open(options);
  const answer = await session.api.get<{ receipt: Receipt }>(`${paths.receipts(await session.scope())}/${ray_id}`);
  session.show(answer, (output) => describeReceipt(answer.receipt).forEach(output.line));
}
