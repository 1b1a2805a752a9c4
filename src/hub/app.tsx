import { effect } from '@preact/signals';
import { render } from 'preact';
import { bearer, is_administrator, readBearer } from './data/bearer.ts';
import { keepFocus } from './data/focus.ts';
import { GROUPS, hub_path, OPERATOR, PEOPLE } from './data/router.ts';
import { keepScroll } from './data/scroll.ts';
import { startSession, state } from './data/session.ts';
import { ChangesPage } from './pages/changes.tsx';
import { GamePage } from './pages/game.tsx';
import { GroupPage } from './pages/group.tsx';
import { HomePage } from './pages/home.tsx';
import { LobbiesPage } from './pages/lobbies.tsx';
import { LobbyPage } from './pages/lobby.tsx';
import { LogInPage } from './pages/log-in.tsx';
import { OperatorPage } from './pages/operator/operator.tsx';
import { OtherAddressPage } from './pages/other-address.tsx';
import { OtherSessionPage } from './pages/other-session.tsx';
import { PersonPage } from './pages/person.tsx';
import { ReceiptPage } from './pages/receipt.tsx';
import { ReceiptsPage } from './pages/receipts.tsx';
import { ServerPage } from './pages/server.tsx';
import { ServersPage } from './pages/servers.tsx';
import { SettingsPage } from './pages/settings/settings.tsx';
import { ShareLinkPage } from './pages/share-link.tsx';
import { TryPage } from './pages/try.tsx';
import { VersionPage } from './pages/version.tsx';
import { VersionsPage } from './pages/versions.tsx';
import { WithNamespace } from './pages/with-namespace.tsx';
import { Layout } from './parts/layout.tsx';
import { NotFoundPage } from './parts/not-found.tsx';

function App() {
  const session = state.value;
  if (session.is === 'unknown') return <Waiting />;
  if (session.is === 'asked') return <OtherSessionPage answer={session.answer} />;
  if (session.is === 'elsewhere') return <OtherAddressPage />;
  if (session.is === 'out') return <LogInPage reason={session.reason} />;
  if (session.is === 'shared') return <ShareLinkPage key={session.token} />;
  return (
    <Layout>
      <CurrentPage />
    </Layout>
  );
}

/** Shown after a moment, so that a quick start shows only the page itself. */
function Waiting() {
  return (
    <main>
      <p class="quiet late">Waiting for the service …</p>
    </main>
  );
}

function CurrentPage() {
  const { game, namespace } = hub_path.value;
  if (game === undefined) return <HomePage />;
  if (game === OPERATOR && bearer.value === undefined) return <p class="quiet">Loading …</p>;
  if (game === OPERATOR)
    return is_administrator.value ? <OperatorPage key={namespace} part={namespace} /> : <NotFoundPage />;
  if (namespace === undefined) return <GamePage name={game} />;
  if (game === GROUPS) return <GroupPage key={namespace} group_id={namespace} />;
  if (game === PEOPLE) return <PersonPage key={namespace} identity_id={namespace} />;
  return (
    <WithNamespace game_name={game} name={namespace}>
      <NamespacePage />
    </WithNamespace>
  );
}

function NamespacePage() {
  const { page, id } = hub_path.value;
  switch (page) {
    case undefined:
      return <LobbiesPage />;
    case 'lobbies':
      return id === undefined ? <LobbiesPage /> : <LobbyPage key={id} id={id} />;
    case 'servers':
      return id === undefined ? <ServersPage /> : <ServerPage key={id} id={id} />;
    case 'why':
      return id === undefined ? <ReceiptsPage /> : <ReceiptPage key={id} id={id} />;
    case 'versions':
      return id === undefined ? <VersionsPage /> : <VersionPage key={id} id={id} />;
    case 'changes':
      return <ChangesPage />;
    case 'settings':
      return <SettingsPage />;
    case 'try':
      return <TryPage />;
    default:
      return <NotFoundPage />;
  }
}

effect(() => {
  bearer.value = undefined;
  if (state.value.is !== 'in') return undefined;
  const session = new AbortController();
  void readBearer(session.signal);
  return () => session.abort();
});
keepFocus();
keepScroll();
render(<App />, document.body);
void startSession();
