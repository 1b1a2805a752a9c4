import { useSignal } from '@preact/signals';
import { useAction } from '../../data/actions.ts';
import { type Answer, post, put, remove } from '../../data/api.ts';
import { may_act } from '../../data/bearer.ts';
import { useNamespace } from '../../data/namespaces.ts';
import { loadScript } from '../../data/scripts.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Section } from '../../parts/section.tsx';

const NAMESPACE = '/cloud/games/{game_id}/namespaces/{namespace_id}';
const DOMAINS = '/cloud/games/{game_id}/namespaces/{namespace_id}/domains';
const DOMAIN = '/cloud/games/{game_id}/namespaces/{namespace_id}/domains/{domain}';
const PUBLIC_AUTH = '/cloud/games/{game_id}/namespaces/{namespace_id}/domain-public-auth';
const AUTH = '/cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth';
const USERS = '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user';
const USER = '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user/{user}';
const BCRYPT_COST = 10;

type Cdn = Answer<typeof NAMESPACE, 'get'>['namespace']['config']['cdn'];

interface SiteProps {
  cdn: Cdn;
  onChange(): Promise<void>;
}

/** The namespace's site: its domains, and who may see it. */
export function SiteSettings({ cdn, onChange }: SiteProps) {
  const { scope } = useNamespace();
  const { is_busy, act } = useAction();
  const setPublicAuth = (enabled: boolean) =>
    act(enabled ? 'Pages of the site may call the matchmaker.' : 'Pages of the site need a token.', async () => {
      await put(PUBLIC_AUTH, scope, { enabled });
      await onChange();
    });
  const setAuth = (is_private: boolean) =>
    act(is_private ? 'The site asks for a user and password.' : 'The site is open to everyone.', async () => {
      await put(AUTH, scope, { auth_type: is_private ? 'basic' : 'none' });
      await onChange();
    });
  const is_fixed = is_busy.value || !may_act.value;
  return (
    <Section title="Site">
      <div class="card pad stack">
        <label class="check">
          <input
            type="checkbox"
            checked={cdn.enable_domain_public_auth}
            disabled={is_fixed}
            onChange={({ currentTarget }) => void setPublicAuth(currentTarget.checked)}
          />
          Let pages of this site, at all its addresses, call the matchmaker without a token
        </label>
        <Domains cdn={cdn} onChange={onChange} />
      </div>
      <div class="card pad stack">
        <label class="check">
          <input
            type="checkbox"
            checked={cdn.auth_type === 'basic'}
            disabled={is_fixed}
            onChange={({ currentTarget }) => void setAuth(currentTarget.checked)}
          />
          Ask visitors for a user and password
        </label>
        <Users cdn={cdn} onChange={onChange} />
      </div>
    </Section>
  );
}

function Domains({ cdn, onChange }: SiteProps) {
  const { scope } = useNamespace();
  const domain = useSignal('');
  const { is_busy, act } = useAction();
  const add = (event: Event) => {
    event.preventDefault();
    const added = domain.value.trim();
    void act(`${added} is a domain of the site.`, async () => {
      await post(DOMAINS, scope, { domain: added });
      domain.value = '';
      await onChange();
    });
  };
  return (
    <>
      <ul class="stack" aria-label="Domains">
        {cdn.domains.length === 0 && <li class="quiet">No domain of your own yet.</li>}
        {cdn.domains.map(({ domain }) => (
          <DomainRow key={domain} domain={domain} onChange={onChange} />
        ))}
      </ul>
      {may_act.value && (
        <form class="row filters" onSubmit={add}>
          <TextField label="Domain" value={domain} placeholder="play.example.com" is_required />
          <button type="submit" disabled={is_busy.value}>
            Add domain
          </button>
        </form>
      )}
    </>
  );
}

function DomainRow({ domain, onChange }: { domain: string; onChange(): Promise<void> }) {
  const { scope } = useNamespace();
  const { is_busy, act } = useAction();
  const drop = () =>
    act(`${domain} is no longer a domain of the site.`, async () => {
      await remove(DOMAIN, { ...scope, domain });
      await onChange();
    });
  return (
    <li class="row">
      <code>{domain}</code>
      {may_act.value && (
        <Confirm
          label="Remove"
          subject={domain}
          question={`Remove the domain ${domain}?`}
          is_disabled={is_busy.value}
          onConfirm={() => void drop()}
        >
          <p>The site is not served there any more.</p>
        </Confirm>
      )}
    </li>
  );
}

function Users({ cdn, onChange }: SiteProps) {
  const { scope } = useNamespace();
  const user = useSignal('');
  const password = useSignal('');
  const { is_busy, act } = useAction();
  const add = (event: Event) => {
    event.preventDefault();
    const name = user.value.trim();
    void act(`${name} may see the site.`, async () => {
      // The request has only a hash of the password.
      const { hash } = await loadScript(() => import('bcryptjs'));
      await post(USERS, scope, { user: name, password: await hash(password.value, BCRYPT_COST) });
      user.value = '';
      password.value = '';
      await onChange();
    });
  };
  return (
    <>
      <ul class="stack" aria-label="Users of the site">
        {cdn.auth_user_list.map(({ user }) => (
          <UserRow key={user} user={user} onChange={onChange} />
        ))}
      </ul>
      {may_act.value && (
        <form class="row filters" onSubmit={add}>
          <TextField label="User" value={user} is_required />
          <TextField label="Password" value={password} is_required />
          <button type="submit" disabled={is_busy.value}>
            Add user
          </button>
        </form>
      )}
    </>
  );
}

function UserRow({ user, onChange }: { user: string; onChange(): Promise<void> }) {
  const { scope } = useNamespace();
  const { is_busy, act } = useAction();
  const drop = () =>
    act(`${user} can no longer see the site.`, async () => {
      await remove(USER, { ...scope, user });
      await onChange();
    });
  return (
    <li class="row">
      <code>{user}</code>
      {may_act.value && (
        <Confirm
          label="Remove"
          subject={user}
          question={`Remove the user ${user}?`}
          is_disabled={is_busy.value}
          onConfirm={() => void drop()}
        />
      )}
    </li>
  );
}
