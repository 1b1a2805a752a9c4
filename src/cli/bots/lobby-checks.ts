/** A running lobby, with what is checked of it. */
export interface SeenLobby {
  lobby_id: string;
  /** The name of its game mode. */
  lobby_group_name_id: string;
  is_closed: boolean;
  /** When it was closed, if that is known. */
  closed_ts?: string;
  is_outdated: boolean;
  total_player_count: number;
  max_players_direct: number;
}

/** A seat that a find gave a bot. */
export interface GivenSeat {
  lobby_id: string;
  /** The player's token, which no other seat has. */
  token: string;
  /** The wanted game mode. */
  mode: string;
  /** When the find began. */
  began_at: number;
}

interface ShutLobby {
  since: number;
  why: string;
  closed_ts: string | undefined;
}

/** Finds what must not happen in the lobbies of a namespace, from seats and lists of lobbies. All moments are of one clock. */
export class LobbyChecks {
  readonly #tokens = new Set<string>();
  /** Lobbies in which no find gives a seat, and since when the bots know it. */
  readonly #shut = new Map<string, ShutLobby>();
  /** Seats since the last list of lobbies. */
  #new_seats: GivenSeat[] = [];

  /** Takes a seat into account. Returns what is wrong with it. */
  addSeat(seat: GivenSeat): string[] {
    const is_taken = this.#tokens.has(seat.token);
    this.#tokens.add(seat.token);
    this.#new_seats.push(seat);
    return is_taken ? [`a seat that another bot has (in the lobby ${seat.lobby_id})`] : [];
  }

  /** Takes a list of the running lobbies into account, and checks the seats since the one before. Returns what is wrong. */
  addLobbies(lobbies: readonly SeenLobby[], answered_at: number): string[] {
    const known = new Map(lobbies.map((lobby) => [lobby.lobby_id, lobby]));
    const seats = this.#new_seats;
    this.#new_seats = [];
    const faults = lobbies
      .filter((lobby) => lobby.total_player_count > lobby.max_players_direct)
      .map(({ lobby_id }) => `an over-filled lobby (${lobby_id})`);
    for (const { lobby_id, mode, began_at } of seats) {
      const lobby = known.get(lobby_id);
      if (!lobby) continue;
      if (lobby.lobby_group_name_id !== mode) faults.push(`a seat in another game mode (in the lobby ${lobby_id})`);
      const shut = this.#shut.get(lobby_id);
      if (shut && shut.since < began_at && isStillShut(shut, lobby)) {
        faults.push(`a seat in a lobby ${shut.why} (${lobby_id})`);
      }
    }
    for (const [lobby_id, lobby] of known) {
      const why = whyShut(lobby);
      const shut = this.#shut.get(lobby_id);
      if (shut && isStillShut(shut, lobby)) continue;
      if (why === undefined) this.#shut.delete(lobby_id);
      else this.#shut.set(lobby_id, { since: answered_at, why, closed_ts: lobby.closed_ts });
    }
    return faults;
  }
}

/** Returns whether a lobby was shut all the time: one that was opened and closed again may have taken players meanwhile. */
function isStillShut({ why, closed_ts }: ShutLobby, lobby: SeenLobby): boolean {
  return why === whyShut(lobby) && closed_ts === lobby.closed_ts;
}

/** Returns why no find gives a seat in a lobby; undefined if one may. */
function whyShut({ is_closed, is_outdated }: SeenLobby): string | undefined {
  if (is_closed) return 'that was closed to finds';
  return is_outdated ? 'of a version other than the live one' : undefined;
}
