import { EXIT, Failure } from '../failure.ts';
import { Session, type SharedOptions } from '../session.ts';

export type TokenKind = 'public' | 'cloud' | 'service';

/** Creates a token, and writes it alone to stdout. */
export async function createToken(kind: TokenKind, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { token } = await session.api.call<{ token: string }>('POST', await pathOf(session, kind));
  session.show({ token }, (output) => output.line(token));
}

async function pathOf(session: Session, kind: TokenKind): Promise<string> {
  const { game, namespace } = await session.scope();
  switch (kind) {
    case 'public':
      return `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/tokens/public`;
    case 'cloud':
      return `/cloud/games/${game.game_id}/tokens/cloud`;
    case 'service':
      return `/games/${game.game_id}/environments/${namespace.namespace_id}/tokens/service`;
  }
}

/** Shows the caller that the token of the commands stands for. */
export async function inspectToken(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const answer = await session.api.get<{ agent: object }>('/cloud/auth/inspect');
  session.show(answer, (output) => output.record(answer.agent));
}

/** Revokes all cloud and service tokens of a game. */
export async function revokeTokens(options: SharedOptions & { yes?: boolean }): Promise<void> {
  const session = await Session.open(options);
  const { game_id, name_id } = await session.game();
  if (!options.yes) {
    const what = `This revokes all cloud and service tokens of ${name_id}, also those of its tools.`;
    throw new Failure(`${what} To do it: muster tokens revoke --yes`, EXIT.wrong_use);
  }
  await session.api.call('POST', `/cloud/games/${game_id}/tokens/revoke`);
  const words = `The cloud and service tokens of ${name_id} are revoked. Create new ones: muster tokens create cloud`;
  session.show({ game_id }, ({ say }) => say(words));
}
