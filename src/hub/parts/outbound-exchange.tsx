import type { Receipt } from '../data/receipts.ts';
import { Facts } from './facts.tsx';
import { Json } from './json.tsx';
import { Section } from './section.tsx';

type Sent = NonNullable<NonNullable<Receipt['verification']>['exchange']>;

interface OutboundExchangeProps {
  /** What it was for. */
  title: string;
  of: Sent | undefined;
  /** Why there was no answer. */
  failure?: string | undefined;
}

/** A request that the service sent to another server, and the answer. */
export function OutboundExchange({ title, of, failure }: OutboundExchangeProps) {
  if (!of) return null;
  const { url, headers, body, answer, status, duration_ms } = of;
  return (
    <Section title={title}>
      <Facts
        of={[
          ['Sent to', <code key="url">POST {url}</code>],
          [
            'Answer',
            status === undefined ? `none: ${FAILURES[failure ?? ''] ?? failure ?? 'unknown'}` : `status ${status}`,
          ],
          ['Took', `${duration_ms.toFixed(1)} ms`],
          ...Object.entries(headers).map(([name, value]): [string, string] => [name, value]),
        ]}
      />
      <Json of={body} label={`What was sent: ${title}`} />
      {answer !== undefined && <Json of={answer} label={`What was answered: ${title}`} />}
    </Section>
  );
}

/** Why a request to another server got no answer. */
const FAILURES: Record<string, string> = {
  bad_request: 'the address or a header is invalid',
  forbidden_address: 'its address is not on the internet (MUSTER_OUTBOUND_ALLOW)',
  too_busy: 'too many requests were under way',
  paused: 'it failed too often, and gets no requests for a few seconds',
  unreachable: 'it could not be reached, or its certificate is invalid',
  broken_answer: 'its answer was not valid http',
  timeout: 'it took too long',
  cancelled: 'the player had disconnected',
};
