import type { AddressClasses } from '../../../platform/address-classes.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Patience } from '../../../platform/http/time-limits.ts';
import { networkOf } from '../../../platform/networks.ts';
import { type Soon, whenThere } from '../../../platform/soon.ts';
import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { Tokens } from '../../../platform/tokens/tokens.ts';
import type { Watch } from '../../../platform/watch/watch.ts';
import type { Captcha } from '../../captcha/captcha.ts';
import { coordinatesOf } from '../../coordinates.ts';
import type { Datacenter, Datacenters } from '../../datacenters/datacenters.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';
import type { Servers } from '../../servers/servers.ts';
import type { Versions } from '../../versions/versions.ts';
import * as playersStore from '../players-store.ts';
import {
  type CreateBody,
  type FindBody,
  type JoinAnswer,
  type JoinBody,
  toJoinAnswer,
  toPorts,
  type Whereabouts,
} from '../wire.ts';
import type { Founding } from './create-lobbies.ts';
import { createSettling, requireNamespace } from './current-version.ts';
import type { KnownLobbies } from './known-lobbies.ts';
import { type Client, type FindRequest, membersOf, playersMaxOf, type SeatRequest } from './planner.ts';
import type { Queue } from './queue.ts';
import type { Draft, Receipts } from './receipts.ts';
import { type Asking, countOf, given, nameMembers } from './request-context.ts';
import { checkAction, checkCreate, checkFind, orderRegions } from './requests.ts';
import { type Rounds, type Seat, tooManyOf, toSeat } from './rounds.ts';
import type { Verifying } from './verify.ts';
import { createReadiness } from './wait-until-ready.ts';

export interface SeatingDependencies {
  database: Database;
  clock: Clock;
  watch: Watch;
  tokens: Tokens;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  servers: Servers;
  known: KnownLobbies;
  rounds: Rounds;
  queue: Queue;
  founding: Founding;
  receipts: Receipts;
  captcha: Pick<Captcha, 'admit'>;
  verifying: Verifying;
  /** Which addresses are not somebody's own. */
  address_classes: AddressClasses;
  /** Slug of the datacenter that this process stands in. */
  own_region: string;
  request_timeout_ms: number;
  /** Somebody has left a lobby that may be empty now. */
  onLeft(): void;
}

/** An answer, and whether its lobby was made for it. */
interface Seated {
  answer: JoinAnswer;
  is_new: boolean;
}

type SeatHolder = Pick<SeatRequest, 'player_id' | 'others' | 'namespace_id'>;

/** How players come to seats. */
export function createSeating(dependencies: SeatingDependencies) {
  const { database, clock, tokens, namespaces, versions, datacenters } = dependencies;
  const { known, rounds, queue, founding, receipts, address_classes, verifying } = dependencies;
  const { own_region, request_timeout_ms, onLeft } = dependencies;
  const { openGate, settle } = createSettling(dependencies);
  const { waitUntilReady } = createReadiness(dependencies);

  /** What is made of all regions for those who say nothing of where they are, as long as they are the same. */
  const own_first_of = new WeakMap<Datacenter[], { regions: Datacenter[]; slugs: string[] }>();

  function putOwnFirst(all: Datacenter[]) {
    const isOwn = ({ slug }: { slug: string }) => slug === own_region;
    const regions = [...all.filter(isOwn), ...all.filter((region) => !isOwn(region))];
    const own_first = { regions, slugs: regions.map(({ slug }) => slug) };
    own_first_of.set(all, own_first);
    return own_first;
  }

  /** Slugs of all regions, the one to recommend first: whoever says nothing else is likely to be near this process. */
  function listRegions(client: Whereabouts): Soon<string[]> {
    return whenThere(datacenters.list(), (all) => {
      const { regions, slugs } = own_first_of.get(all) ?? putOwnFirst(all);
      if (!client.coordinates && !client.latencies) return slugs;
      return orderRegions(
        regions.map(({ slug, ...place }) => ({ slug, coordinates: coordinatesOf(place) })),
        client,
      );
    });
  }

  /** What a player may choose from in a namespace: game modes, and slugs of regions. */
  function listChoices(namespace: NamespaceRow, client: Whereabouts) {
    return whenThere(versions.gameModes(namespace), (modes) =>
      whenThere(listRegions(client), (regions) => ({ modes, regions })),
    );
  }

  function clientOf(limits: NamespaceRow, address: string): Client {
    return { name: networkOf(address), players_max: playersMaxOf(limits, address_classes.of(address)) };
  }

  /** Waits until a seat's lobby is ready and says how to get there. Whoever does not wait so long has no seat. */
  async function waitIn(
    seat: Seat,
    request: SeatHolder,
    patience: Patience,
    draft: Draft | undefined,
  ): Promise<Seated> {
    draft?.reach('seated');
    try {
      const ports = seat.ports ?? (await waitUntilReady(seat, request.player_id, patience));
      // Nobody is there to sit down: the client has gone, or has been told that it took too long.
      if (!ports || patience.is_over) throw new ServiceError('API_REQUEST_TIMEOUT', { timeout_ms: request_timeout_ms });
      draft?.reach('ready');
      const region = await describeRegion(seat.region);
      const player_tokens: string[] = [];
      for (const player_id of membersOf(request)) {
        player_tokens.push(await tokens.issue({ kind: 'player', player_id }));
      }
      const answer = toJoinAnswer(
        { lobby_id: seat.lobby_id, ...(seat.code === null ? {} : { code: seat.code }), region },
        toPorts(ports),
        player_tokens,
      );
      return { answer, is_new: seat.is_new };
    } catch (error) {
      await giveBack(request);
      throw error;
    }
  }

  async function giveBack(holder: SeatHolder): Promise<void> {
    const how = { reason: 'request_ended', now: clock.now() } as const;
    const { removed } = await playersStore.removePlayers(
      database.queries,
      holder.namespace_id,
      playersStore.isAmong(membersOf(holder)),
      how,
    );
    if (removed > 0) onLeft();
  }

  function describeRegion(slug: string): Soon<JoinAnswer['lobby']['region']> {
    return whenThere(datacenters.list(), (all) => {
      const datacenter = all.find((one) => one.slug === slug);
      return { region_id: slug, display_name: datacenter?.name ?? slug };
    });
  }

  return {
    /**
     * A seat in the fullest open lobby that suits, or in one made for it; with `wait_ms` one that it waited for, when there
     * are as many lobbies as there may be. Answers when the lobby is ready.
     */
    async find({ namespace_id }: CallerOf<'public'>, body: FindBody, asking: Asking): Promise<JoinAnswer> {
      const { address, patience } = asking;
      const namespace = await requireNamespace(namespaces, namespace_id);
      const { game_modes, regions, tags, max_players, prevent_auto_create_lobby, wait_ms } = body;
      const receipt = () => {
        const wanted = { game_modes, regions, tags, max_players, wait_ms };
        const request = { ...given(wanted), creates: prevent_auto_create_lobby !== true, ...countOf(body) };
        const { version_id } = namespace;
        return { kind: 'find', ray_id: asking.ray_id, namespace_id, version_id, request } as const;
      };
      return await receipts.keep(receipt, async (draft) => {
        const members = nameMembers(body);
        let permitted: Pick<FindRequest, 'version_id' | 'search'> | undefined;
        const letIn = openGate(body, asking, draft);
        const permit = (row: NamespaceRow) => {
          const { game_id, version_id } = row;
          const place = { game_id, namespace_id, version_id };
          draft?.search(version_id, regions);
          return whenThere(listChoices(row, body), ({ modes, regions: all_regions }) => {
            const search = checkFind(body, modes, all_regions);
            draft?.search(version_id, search.regions);
            const verify = () => verifying.find({ ...place, ...asking, draft }, body, search, modes, all_regions);
            return whenThere(whenThere(letIn(place), verify), (verified) => ({ version_id, search: verified }));
          });
        };
        const prepare = (row_now: NamespaceRow): Soon<FindRequest> => {
          const settled =
            permitted?.version_id === row_now.version_id
              ? { row: row_now, decided: permitted }
              : settle(row_now, permit);
          return whenThere(settled, ({ row, decided }) => {
            permitted = decided;
            const { game_id, lobby_count_max } = row;
            const limits = { client: clientOf(row, address), lobby_count_max };
            const is_explained = draft !== undefined;
            return { kind: 'find', ...members, ...limits, game_id, namespace_id, address, ...decided, is_explained };
          });
        };
        const prepareAgain = () => whenThere(requireNamespace(namespaces, namespace_id), prepare);
        const readiness = {
          ticket: body.ticket?.toLowerCase() ?? crypto.randomUUID(),
          wait_ms: wait_ms ?? 0,
          patience,
        };
        const seat =
          wait_ms === undefined
            ? await rounds.seat(await prepare(namespace), draft)
            : await queue.seat(prepareAgain, readiness, draft);
        return await waitIn(seat, { ...members, namespace_id }, patience, draft);
      });
    },
    /** A lobby of the player's own, with his seat in it. Answers when it is ready. */
    async create(caller: CallerOf<'public'>, body: CreateBody, asking: Asking): Promise<JoinAnswer> {
      const namespace = await requireNamespace(namespaces, caller.namespace_id);
      const { namespace_id, game_id, version_id } = namespace;
      const { game_mode, region, tags, max_players } = body;
      const wanted = {
        game_modes: [game_mode],
        regions: region === undefined ? undefined : [region],
        tags,
        max_players,
      };
      const receipt = () => {
        const request = { ...given(wanted), ...countOf(body) };
        return { kind: 'create', ray_id: asking.ray_id, namespace_id, version_id, request } as const;
      };
      return await receipts.keep(receipt, async (draft) => {
        const { address } = asking;
        const letIn = openGate(body, asking, draft);
        const { row, decided } = await settle(namespace, async (now) => {
          const place = { game_id, namespace_id, version_id: now.version_id };
          draft?.search(now.version_id, region === undefined ? undefined : [region]);
          const { modes, regions } = await listChoices(now, body);
          const lobby = checkCreate(body, modes, regions);
          draft?.search(now.version_id, [lobby.region]);
          await letIn(place);
          await verifying.create({ ...place, ...asking, draft }, body, lobby, modes);
          return { ...place, lobby };
        });
        const founder = { ...nameMembers(body), address, client: clientOf(row, address) };
        const [founded] = await founding.foundLobbies([{ ...decided, founders: [founder] }]);
        if (!founded || founded.crowded.length > 0) throw tooManyOf(founder);
        if ('error' in founded) throw founded.error;
        return await waitIn(toSeat(founded.lobby, true), { ...founder, namespace_id }, asking.patience, draft);
      });
    },
    /** A seat in a lobby that the player knows. Being closed is no obstacle (specification: States). */
    async join(caller: CallerOf<'public'>, body: JoinBody, asking: Asking): Promise<JoinAnswer> {
      const { players } = body;
      const namespace = await requireNamespace(namespaces, caller.namespace_id);
      const { namespace_id, game_id, version_id } = namespace;
      const receipt = () => {
        const request = { ...given({ lobby_id: body.lobby_id }), ...countOf({ players }) };
        return { kind: 'join', ray_id: asking.ray_id, namespace_id, version_id, request } as const;
      };
      return await receipts.keep(receipt, async (draft) => {
        const { lobby_id, game_mode, is_remembered, ...lobby } = await known.lookUp(namespace, body);
        const { address, patience } = asking;
        const members = nameMembers({ players });
        const place = { game_id, namespace_id, address, client: clientOf(namespace, address) };
        const request = { kind: 'join', ...members, ...place, lobby_id, is_explained: draft !== undefined } as const;
        const sitDown = async (): Promise<Seat> => {
          const modes = await versions.gameModes({ game_id, version_id: lobby.version_id });
          const mode = modes.get(game_mode);
          checkAction(mode?.join ?? { enabled: true }, 'MATCHMAKER_JOIN_DISABLED');
          await openGate(body, asking, draft)({ game_id, namespace_id, version_id });
          await verifying.join({ namespace_id, version_id, ...asking, draft }, body, lobby_id, mode);
          return await rounds.seat(request, draft);
        };
        const seat = await sitDown().catch(async (refusal: unknown) => {
          throw is_remembered ? await known.findRefusal(lobby_id, refusal) : refusal;
        });
        return await waitIn(seat, request, patience, draft);
      });
    },
  };
}
