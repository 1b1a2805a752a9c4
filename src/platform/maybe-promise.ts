/** A value that is usually known at once, so that most callers get it without a promise. Awaiting it is always right. */
export type MaybePromise<Value> = Value | Promise<Value>;
