import { OutboundFailure } from '../../src/platform/outbound/outbound.ts';
import { rejectionOf } from './refusal.ts';

/** Returns the kind of the failure of a request to another server. Fails if it did not fail. */
export async function kindOf(sent: Promise<unknown>): Promise<OutboundFailure['kind']> {
  return (await rejectionOf(OutboundFailure, sent)).kind;
}
