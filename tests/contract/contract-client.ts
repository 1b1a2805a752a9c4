import type { Api } from '../support/api.ts';
import { contractProblems, OPERATIONS } from '../support/contract.ts';

interface Request {
  /** Values for the placeholders of the path. */
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
  token?: string;
  headers?: Record<string, string>;
}

export type ContractClient = ReturnType<typeof createContractClient>;

/** Calls operations by their names in the contract, and records which of them answered as it says. */
export function createContractClient(api: Api) {
  const called = new Set<string>();
  return {
    called,
    /** Returns the answer to an operation, which must be a success in the contract's shape. */
    // biome-ignore lint/suspicious/noExplicitAny: answers are of every shape there is.
    async call(name: string, { path = {}, query = {}, ...request }: Request = {}): Promise<any> {
      const operation = OPERATIONS.find((candidate) => candidate.operation === name);
      if (!operation) throw new Error(`the contract has no operation ${name}`);
      const filled = operation.path.replace(/\{(\w+)\}/g, (_, parameter) => {
        const value = path[parameter];
        if (value === undefined) throw new Error(`${name} needs ${parameter}`);
        return encodeURIComponent(value);
      });
      const search = new URLSearchParams(query).toString();
      const url = search === '' ? filled : `${filled}?${search}`;
      const { status, body } = await api.call(operation.method, url, request);
      if (status !== 200) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`);
      // The reference API promises 204 for empty answers, and sends 200 with {}.
      const shape = operation.response['200'] ?? operation.response['204'] ?? 'any';
      const different = contractProblems(shape, body);
      if (different.length > 0) throw new Error(`${name}: ${different.slice(0, 5).join('; ')}`);
      called.add(name);
      return body;
    },
  };
}
