import { connect } from '../../client/client.ts';
import type { RowsBody, WholeBody } from '../../client/rows.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { ago, counted, type Output, shortId } from '../../terminal/terminal.ts';
import { paths } from '../paths.ts';
import { type Scope, Session, type SharedOptions } from '../session.ts';
import { openSocket } from '../web-socket.ts';

interface WatchOptions extends SharedOptions {
  count?: string;
}

interface LobbyRow {
  lobby_id: string;
  server_id: string;
  version_id: string;
  game_mode_id: string;
  region_id: string;
  create_ts: string;
  status: string;
  max_players_normal: number;
  player_count: number;
}

interface LobbyList extends RowsBody<LobbyRow> {
  matching: number;
  summary: { lobbies: number; players: number };
}

const COUNT = { default: 50, max: 200 };
/** Lines of the terminal that are not lobbies: the summary, the headings, and the cursor's. */
const OTHER_LINES = 3;
/** Rows of a terminal that does not say how many it has. */
const ROWS_DEFAULT = 24;
/** The ages of a table are written again this often. */
const AGES_EVERY_MS = 10_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';
/** Whether the terminal wraps long lines. A wrapped line would take a row that was counted for another lobby. */
const WRAP = { off: '\u001b[?7l', on: '\u001b[?7h' };

/** Shows the newest running lobbies of a namespace now, and again after every change, which the service pushes. */
export async function watchLobbies(options: WatchOptions): Promise<void> {
  const count = readCount(options.count);
  const session = await Session.open(options);
  const scope = await session.scope();
  const { output } = session;
  const is_table = !session.is_json && process.stdout.isTTY;
  let list: WholeBody<LobbyList> | undefined;
  let is_connected = true;

  function draw(): void {
    const shown = list;
    if (!shown) return;
    if (is_table) output.control(WRAP.off + CLEAR_SCREEN);
    session.show(shown, () => showLobbies(output, scope, shown));
    if (is_table) output.control(WRAP.on);
    if (is_table && !is_connected) output.say('The connection is lost; trying again.');
  }

  const { promise, reject } = Promise.withResolvers<never>();
  const client = connect({
    url: session.api.url,
    token: session.api.token,
    openSocket,
    onConnection(is_open) {
      const has_changed = is_connected !== is_open;
      is_connected = is_open;
      if (has_changed && is_table) draw();
    },
  });
  const ages_timer = is_table ? setInterval(draw, AGES_EVERY_MS) : undefined;
  client.watchRows<LobbyList>(
    `${paths.lobbyRows(scope)}?count=${count}`,
    (body) => {
      list = body;
      draw();
    },
    {
      onError: (refusal) => reject(session.api.toFailure(refusal)),
      onDelayed: ({ message }) => output.say(message),
    },
  );
  try {
    await promise;
  } finally {
    clearInterval(ages_timer);
    client.close();
  }
}

/** Returns how many lobbies to show. Throws Failure. */
function readCount(wanted: string | undefined): number {
  const fitting = process.stdout.isTTY
    ? Math.max(1, (process.stdout.rows || ROWS_DEFAULT) - OTHER_LINES)
    : COUNT.default;
  const count = wanted === undefined ? Math.min(fitting, COUNT.max) : Number(wanted);
  if (Number.isInteger(count) && count >= 1 && count <= COUNT.max) return count;
  throw new Failure(`--count is "${wanted}": write 1 to ${COUNT.max}.`, EXIT.wrong_use);
}

function showLobbies(output: Output, { game, namespace }: Scope, { summary, rows }: WholeBody<LobbyList>): void {
  const rest = rows.length < summary.lobbies ? `; the newest ${rows.length}:` : '';
  const counts = `${counted(summary.lobbies, 'lobby', 'lobbies')}, ${counted(summary.players, 'player', 'players')}`;
  output.line(`${game.name_id} ${namespace.name_id}: ${counts}${rest}`);
  if (rows.length === 0) return;
  // A version that was deployed since the command began has no name here.
  const nameOf = (id: string) => game.versions.find(({ version_id }) => version_id === id)?.display_name ?? shortId(id);
  output.table(
    ['LOBBY', 'MODE', 'REGION', 'PLAYERS', 'STATE', 'VERSION', 'SERVER', 'AGE'],
    rows.map((row) => [
      shortId(row.lobby_id),
      row.game_mode_id,
      row.region_id,
      `${row.player_count}/${row.max_players_normal}`,
      row.status,
      nameOf(row.version_id),
      shortId(row.server_id),
      ago(row.create_ts),
    ]),
  );
}
