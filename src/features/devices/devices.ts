import { after, CLOCK_SKEW_MAX_MS, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { LIFETIMES_MS, type Tokens } from '../../platform/tokens/tokens.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import type { Games } from '../games/games.ts';
import { topics } from '../topics.ts';
import { codeOf, creationTimeOf } from './code.ts';
import { insertLink, selectLink } from './store.ts';
import type { DeviceLink, PreparedLink } from './wire.ts';

interface DevicesSettings {
  public_url: string;
}

export interface DevicesDependencies extends DevicesSettings {
  database: Database;
  clock: Clock;
  tokens: Tokens;
  games: Games;
}

export type Devices = ReturnType<typeof createDevices>;

/**
 * Creates the use cases of device links: a tool prepares a link, a person opens it and chooses a game, and the tool
 * receives a cloud token. A link that is not complete is only its token, which lives for an hour; nothing is stored.
 */
export function createDevices({ database, clock, tokens, games, public_url }: DevicesDependencies) {
  /** A link as its tool sees it. Watchable, by the id of the link. */
  const link: Watchable<string, DeviceLink> = {
    topics: (device_link_id) => [topics.deviceLink(device_link_id)],
    async read(device_link_id) {
      const row = await selectLink(database.queries, device_link_id);
      if (!row) return {};
      // Derives one token for each link, because all watchers must see the same content until it changes.
      const stamp = { token_id: device_link_id, at: row.complete_ts };
      return { cloud_token: await games.createCloudToken(row.game_id, stamp) };
    },
  };

  /** Issues the token of a link, which is always the same. */
  const issueToken = (device_link_id: string) => {
    const stamp = { token_id: device_link_id, at: creationTimeOf(device_link_id) };
    return tokens.issue({ kind: 'device_link', device_link_id }, { stamp });
  };

  /** Verifies the token of a link. Throws TOKEN_ERROR. */
  const readToken = (device_link_token: string) => tokens.verifyKind(device_link_token, ['device_link']);

  return {
    link,
    readToken,
    /** Returns the code that the page of a link shows. Throws TOKEN_ERROR. */
    async codeOfLink(device_link_token: string): Promise<string> {
      const { device_link_id } = await readToken(device_link_token);
      // The label of a token is not signed, so one link could have tokens with several codes.
      return codeOf(await issueToken(device_link_id));
    },
    async prepare(): Promise<PreparedLink> {
      // Its time is that of the link.
      const device_link_id = Bun.randomUUIDv7('hex', clock.now());
      const device_link_token = await issueToken(device_link_id);
      const device_link_url = `${public_url}/devices/link/${device_link_token}`;
      const short_url = `${public_url}/link/${device_link_id}`;
      return { device_link_id, device_link_token, device_link_url, short_url, code: codeOf(device_link_token) };
    },
    /** Returns the token of a link by its id. Throws TOKEN_ERROR for an id that is not of the last hour. */
    async tokenOf(device_link_id: string): Promise<string> {
      // Another process of the service may have created the link by its own clock.
      if (creationTimeOf(device_link_id) > after(clock.now(), CLOCK_SKEW_MAX_MS)) {
        throw new ServiceError('TOKEN_ERROR', {
          reason: 'the link was not made by this service, or its time is in the future',
        });
      }
      const device_link_token = await issueToken(device_link_id);
      await readToken(device_link_token);
      return device_link_token;
    },
    /**
     * Completes a link, so that its tool gets a cloud token for the game, and returns the time of this token. Throws
     * GAME_NOT_FOUND, TOKEN_ERROR or CLOUD_DEVICE_LINK_ALREADY_COMPLETE.
     */
    async complete(caller: CallerOf<'identity'>, device_link_token: string, game_id: string): Promise<{ at: Date }> {
      const { device_link_id } = await readToken(device_link_token);
      const { at } = await games.authorizeTokenIssue(caller, game_id);
      // The tokens of earlier links have expired, so their rows are of no use.
      const expired = after(clock.now(), -LIFETIMES_MS.device_link);
      const row = { device_link_id, game_id, complete_ts: at };
      const is_new = await database.transact((tx) => insertLink(tx, row, expired));
      if (!is_new) throw new ServiceError('CLOUD_DEVICE_LINK_ALREADY_COMPLETE', {});
      return { at };
    },
  };
}
