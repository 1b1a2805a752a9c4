/** A value that is usually known at once, so that most callers get it without a promise. Awaiting it is always right. */
export type MaybePromise<Value> = Value | Promise<Value>;

/**
 * Passes a value on: at once if it is known, else when its promise is fulfilled. Returns what `use` returns. Queries of
 * drizzle are not instances of `Promise`: await them first.
 */
export function whenKnown<Value, Result>(
  value: MaybePromise<Value>,
  use: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return value instanceof Promise ? value.then(use) : use(value);
}
