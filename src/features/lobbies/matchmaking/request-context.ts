import type { RequestDeadline } from '../../../platform/http/request-deadline.ts';

/** The facts about a request that a use case needs besides its body. */
export interface RequestContext {
  address: string;
  /** Returns the header Origin; undefined if no page sent the request. */
  readOrigin(): string | undefined;
  /** Returns the header User-Agent; null if there is none. */
  readUserAgent(): string | null;
  /** The id of the request and of its receipt. */
  ray_id: string;
  deadline: RequestDeadline;
}
