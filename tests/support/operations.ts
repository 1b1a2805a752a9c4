import type { CallerKind } from '../../src/platform/tokens/caller.ts';
import type { Api } from './api.ts';
import { CALLER_KINDS } from './callers.ts';

/** An operation of the service, from its API document. */
export interface Operation {
  method: string;
  /** With names in braces: /games/{game_id}. */
  path: string;
  /** The names in its path. */
  names: string[];
  /** The kinds of token that it takes; undefined if it needs none. */
  kinds: CallerKind[] | undefined;
}

interface Document {
  paths: Record<string, Record<string, { description?: string; security?: unknown }>>;
}

export async function listOperations(api: Api): Promise<Operation[]> {
  const { paths }: Document = await api.ok('GET', '/openapi.json');
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { description = '', security }]) => ({
      method: method.toUpperCase(),
      path,
      names: [...path.matchAll(/\{([a-z_]+)\}/g)].map(([, name = '']) => name),
      kinds: security === undefined ? undefined : readKinds(description),
    })),
  );
}

/** From "Takes a token of kind identity or cloud." */
function readKinds(description: string): CallerKind[] {
  const [, list = ''] = /^Takes a token of kind ([^.]+)\./.exec(description) ?? [];
  return list.split(' or ').map((name) => {
    const kind = CALLER_KINDS.find((known) => known === name);
    if (!kind) throw new Error(`the document says "${description}"`);
    return kind;
  });
}

/** Returns the operation's path with these ids; a missing id is replaced by an unknown one. */
export function fillPath({ path }: Pick<Operation, 'path'>, ids: Record<string, string> = {}): string {
  return path.replace(/\{([a-z_]+)\}/g, (_, name: string) => ids[name] ?? crypto.randomUUID());
}
