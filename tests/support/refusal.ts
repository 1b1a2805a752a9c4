type Class<Refusal extends Error> = abstract new (...args: never[]) => Refusal;

/** Returns the error that a call throws. Fails if it throws none, or one of another class. */
export function refusalOf<Refusal extends Error>(wanted: Class<Refusal>, call: () => unknown): Refusal {
  try {
    call();
  } catch (error) {
    return ofClass(wanted, error);
  }
  throw new Error('it was not refused');
}

/** Returns the error with which a promise is rejected. Fails if it is not rejected, or with an error of another class. */
export async function rejectionOf<Refusal extends Error>(
  wanted: Class<Refusal>,
  work: PromiseLike<unknown>,
): Promise<Refusal> {
  const rejection = await work.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  if (!rejection) throw new Error('it was not refused');
  return ofClass(wanted, rejection.error);
}

function ofClass<Refusal extends Error>(wanted: Class<Refusal>, error: unknown): Refusal {
  if (error instanceof wanted) return error;
  throw new Error(`refused by ${error}`, { cause: error });
}
