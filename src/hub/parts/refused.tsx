import type { Refusal } from '../../client/wire.ts';
import { NotFoundPage } from './not-found.tsx';
import { Notice } from './notice.tsx';

interface RefusedProps {
  error: Pick<Refusal, 'message'> & Partial<Refusal>;
  /** What the address names, such as "lobby". */
  what: string;
}

/** Shown for what could not be read: it does not exist, its id is no id, or the service refused it for another reason. */
export function RefusedPage({ error, what }: RefusedProps) {
  return error.code?.endsWith('NOT_FOUND') ? <NotFoundPage what={what} /> : <Notice error={error} />;
}
