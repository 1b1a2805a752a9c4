import { EXIT, Failure } from '../../terminal/failure.ts';
import { createPublicToken } from '../find.ts';
import { Session, type SharedOptions } from '../session.ts';

export type TokenKind = 'public' | 'cloud' | 'service';

/** Creates a token, and writes it alone to stdout. */
export async function createToken(kind: TokenKind, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const token = await createTokenOf(session, kind);
  session.show({ token }, (output) => output.line(token));
}

async function createTokenOf(session: Session, kind: TokenKind): Promise<string> {
  const create = async (path: string) => (await session.api.call<{ token: string }>('POST', path)).token;
  // A cloud token is for all namespaces of the game, which may have no default one.
  if (kind === 'cloud') return await create(`/cloud/games/${(await session.game()).game_id}/tokens/cloud`);
  const scope = await session.scope();
  if (kind === 'public') return await createPublicToken(session, scope);
  return await create(`/games/${scope.game.game_id}/environments/${scope.namespace.namespace_id}/tokens/service`);
}

/** Shows the caller that the token of the commands stands for. */
export async function inspectToken(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const answer = await session.api.get<{ agent: object }>('/cloud/auth/inspect');
  session.show(answer, (output) => output.record(answer.agent));
}

/** Revokes all cloud and service tokens and share links of a game. */
export async function revokeTokens(options: SharedOptions & { yes?: boolean }): Promise<void> {
  const session = await Session.open(options);
  const game = await session.game();
  const { game_id, name_id } = game;
  if (!options.yes) {
    const what = `This revokes all cloud and service tokens and share links of ${name_id}, also the tokens of its tools.`;
    throw new Failure(`${what} To do it: ${session.commandFor(game, 'tokens revoke --yes')}`, EXIT.wrong_use);
  }
  const { agent } = await session.api.get<{ agent: object }>('/cloud/auth/inspect');
  await session.api.call('POST', `/cloud/games/${game_id}/tokens/revoke`);
  // A cloud token has revoked itself.
  const advice =
    'game_cloud' in agent
      ? session.api.login_advice
      : `A new token: ${session.commandFor(game, 'tokens create cloud')}`;
  session.show({ game_id }, ({ say }) =>
    say(`All cloud and service tokens and share links of ${name_id} are revoked. ${advice}`),
  );
}
