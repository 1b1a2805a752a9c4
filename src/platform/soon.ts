/**
 * A value that is nearly always there already, and only promised where it is not. What every request asks for is given
 * so: each promise between the request and its answer costs more than most of what is looked up.
 */
export type Soon<Value> = Value | Promise<Value>;

/** Does something with a value, at once if it is there. Throws, or fails, as that does. */
export function whenThere<Value, Result>(value: Soon<Value>, use: (value: Value) => Soon<Result>): Soon<Result> {
  return value instanceof Promise ? value.then(use) : use(value);
}
