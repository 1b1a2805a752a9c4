import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { isUuid } from '../../shared/uuid.ts';
import { run } from '../data/actions.ts';
import { is_administrator, may_act } from '../data/bearer.ts';
import { type Command, selectCommands } from '../data/commands.ts';
import { type Deployment, deploy, useDeployments, versionBefore } from '../data/deployments.ts';
import { LOBBIES, type LobbyRow } from '../data/lobbies.ts';
import { type NamespaceOfGame, scopeOf, shortId, versionName } from '../data/namespaces.ts';
import { goTo, type HubPath, hrefOf, hub_path } from '../data/router.ts';
import { useRows } from '../data/rows.ts';
import { logOut } from '../data/session.ts';
import { useWatched } from '../data/watched.ts';
import { Dialog, is_covered, useDialog } from './dialog.tsx';
import { OPERATOR_TABS, operatorPath, TABS } from './tabs.tsx';

/** Lobbies that the palette offers: the newest ones, or those with a text in their ids. */
const LOBBIES_MAX = 30;
/** A word that may be a part of an id. */
const PART_OF_ID = /^[0-9a-f-]{3,36}$/i;

/** A list of everything that one can go to or do from here, opened by ⌘K or Ctrl+K. */
export function Palette() {
  const dialog = useDialog();
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      if (!is_covered.value) dialog.open();
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, []);
  return (
    <>
      <button type="button" class="small" onClick={dialog.open}>
        <kbd>{/Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'}</kbd>
        <span class="hidden">: pages and actions</span>
      </button>
      <Dialog of={dialog} title="Pages and actions">
        <Commands onDone={dialog.close} />
      </Dialog>
    </>
  );
}

/** The commands of what the page is about: its namespace, its game, and all games. */
function Commands({ onDone }: { onDone(): void }) {
  const games = useWatched('/cloud/games', {}).value;
  const all = games.is === 'here' ? games.body.games : [];
  const found = all.find(({ name_id }) => name_id === hub_path.value.game);
  const watched = useWatched('/cloud/games/{game_id}', found && { game_id: found.game_id }).value;
  const game = watched.is === 'here' ? watched.body.game : undefined;
  const namespace = game?.namespaces.find(({ name_id }) => name_id === hub_path.value.namespace);
  const target = game && namespace && { game, namespace };
  const scope = target && scopeOf(target);
  const query = useSignal('');
  const id = query.value.split(/\s+/).find((word) => PART_OF_ID.test(word));
  const running = useRows(LOBBIES, scope, { count: String(LOBBIES_MAX), ...(id !== undefined && { id }) }).value;
  const { deployments } = useDeployments(target);
  const commands: Command[] = [
    ...(target ? [...pageCommands(target), ...versionCommands(target)] : []),
    ...(target && may_act.value ? deployCommands(target, deployments) : []),
    ...(target && running.is === 'here' ? running.body.rows.flatMap((lobby) => lobbyCommands(target, lobby)) : []),
    ...(game?.namespaces ?? []).map(({ name_id }) =>
      goCommand(name_id, 'namespace', { game: game?.name_id ?? '', namespace: name_id }),
    ),
    ...all.map(({ name_id, display_name }) => goCommand(`${display_name} (${name_id})`, 'game', { game: name_id })),
    goCommand('Home', 'page', {}),
    ...(is_administrator.value ? operatorCommands() : []),
    { id: 'log out', text: 'Log out', kind: 'action', run: () => void run(undefined, logOut) },
  ];
  return <Choose query={query} commands={commands} {...(target && { here: pathOf(target) })} onDone={onDone} />;
}

/** The parts of the operator's page. */
function operatorCommands(): Command[] {
  return OPERATOR_TABS.map(([name, text]) =>
    goCommand(name === undefined ? 'Operator' : `Operator: ${text}`, 'page', operatorPath(name)),
  );
}

const pathOf = ({ game, namespace }: NamespaceOfGame): HubPath => ({
  game: game.name_id,
  namespace: namespace.name_id,
});

function pageCommands(target: NamespaceOfGame): Command[] {
  return TABS.map(([page, text]) =>
    goCommand(text, 'page', { ...pathOf(target), ...(page !== undefined && { page }) }),
  );
}

function versionCommands(target: NamespaceOfGame): Command[] {
  return target.game.versions.map(({ version_id, display_name }) =>
    goCommand(display_name, 'version', { ...pathOf(target), page: 'versions', id: version_id }),
  );
}

function deployCommands(target: NamespaceOfGame, deployments: Deployment[]): Command[] {
  const { game, namespace } = target;
  const before = versionBefore(target, deployments);
  const to = (version_id: string, text: string): Command => ({
    id: `${text} (${version_id})`,
    text,
    kind: 'action',
    run: () => void deploy(target, version_id),
  });
  const others = game.versions.filter(({ version_id }) => version_id !== namespace.version_id);
  return [
    ...(before === undefined ? [] : [to(before, `Roll back ${namespace.name_id} to ${versionName(game, before)}`)]),
    ...others.map(({ version_id, display_name }) => to(version_id, `Deploy ${display_name} to ${namespace.name_id}`)),
  ];
}

function lobbyCommands(target: NamespaceOfGame, { lobby_id, server_id, game_mode_id }: LobbyRow): Command[] {
  const here = pathOf(target);
  return [
    goCommand(`${shortId(lobby_id)} ${game_mode_id}`, 'lobby', { ...here, page: 'lobbies', id: lobby_id }),
    goCommand(shortId(server_id), 'server', { ...here, page: 'servers', id: server_id }),
  ];
}

function goCommand(text: string, kind: string, to: HubPath): Command {
  const href = hrefOf(to);
  return { id: `${kind} ${href}`, text, kind, run: () => goTo(href) };
}

/** What a whole id may be: the page does not know which, so it offers all. */
function commandsOfId(id: string, here: HubPath): Command[] {
  if (!isUuid(id)) return [];
  const pages = [
    ['why', 'request by its ray id'],
    ['lobbies', 'lobby'],
    ['servers', 'server'],
  ] as const;
  return pages.map(([page, kind]) => goCommand(id, kind, { ...here, page, id }));
}

interface ChooseProps {
  query: Signal<string>;
  commands: Command[];
  /** The namespace in which ids are looked up. */
  here?: HubPath;
  onDone(): void;
}

/** A combobox of commands: arrows move, Enter runs. */
function Choose({ query, commands, here, onDone }: ChooseProps) {
  /** The id of the command that the arrows chose; undefined for the first one. */
  const chosen = useSignal<string | undefined>(undefined);
  const list = useRef<HTMLDivElement>(null);
  const id = query.value.trim();
  const all = [...(here ? commandsOfId(id, here) : []), ...selectCommands(commands, query.value)];
  const found = [...new Map(all.map((command) => [command.id, command])).values()];
  // Commands come and go while the list is open. If the chosen one has gone, none is chosen.
  const at = chosen.value === undefined ? 0 : found.findIndex((command) => command.id === chosen.value);
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: 'nearest' }), [at]);
  const choose = (command: Command | undefined) => {
    if (!command) return;
    onDone();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) chosen.value = found[Math.max(0, Math.min(found.length - 1, at + step))]?.id;
    else if (event.key === 'Enter') choose(found[at]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label="Search"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[at] && `palette-${at}`}
        autocomplete="off"
        placeholder="A game, page, lobby, server, ray id or action"
        value={query.value}
        onInput={({ currentTarget }) => {
          query.value = currentTarget.value;
          chosen.value = undefined;
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id="palette-list" class="palette" role="listbox" aria-label="Commands">
        {found.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard chooses in the field above
          <div
            key={command.id}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            tabIndex={-1}
            onClick={() => choose(command)}
          >
            <span class="cut">{command.text}</span> <span class="quiet">{command.kind}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="quiet">No match.</p>}
    </>
  );
}
