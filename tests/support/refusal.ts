type Class<Refusal extends Error> = abstract new (...args: never[]) => Refusal;

/** What a call throws; fails when it throws nothing, or something of another class. */
export function refusalOf<Refusal extends Error>(wanted: Class<Refusal>, call: () => unknown): Refusal {
  try {
    call();
  } catch (error) {
    return ofClass(wanted, error);
  }
  throw new Error('it was not refused');
}

/** The same for what it is rejected with. */
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
