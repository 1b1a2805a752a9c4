import { Failure } from '../../terminal/failure.ts';
import { toSentence } from '../../terminal/terminal.ts';
import type { ApiCaller } from '../api-caller.ts';
import type { Finding } from './finding.ts';

/** A problem as the service names it. */
interface ServiceFinding {
  message: string;
  advice: string;
}

/** Returns what a service says of itself: why it is not ready, or what its operator should correct. */
export async function checkReadiness(api: ApiCaller): Promise<{ is_ready: boolean; findings: Finding[] }> {
  try {
    const { warnings = [] } = await api.get<{ warnings?: ServiceFinding[] }>('/health/ready');
    return { is_ready: true, findings: warnings.map(toFinding) };
  } catch (error) {
    if (!(error instanceof Failure && error.refusal)) throw error;
    const { reasons } = (error.refusal.metadata ?? {}) as { reasons?: ServiceFinding[] };
    // Another program has answered, or the service has another problem than that it is not ready.
    if (!reasons) throw error;
    return { is_ready: false, findings: reasons.map(toFinding) };
  }
}

function toFinding({ message, advice }: ServiceFinding): Finding {
  return { what: toSentence(message), advice };
}
