import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type Answer, get, type Parameters } from '../data/api.ts';
import { useUnmountSignal } from '../data/unmount-signal.ts';
import { Notice } from './notice.tsx';
import { Table } from './table.tsx';
import { Age } from './time.tsx';

type AuditPath = '/cloud/audit-log' | '/cloud/games/{game_id}/audit-log';
type Page = Answer<AuditPath, 'get'>;
type Entry = Page['entries'][number];

interface AuditLogProps<Path extends AuditPath> {
  path: Path;
  parameters: Parameters<Path>;
}

/** Who changed what, when and from where, the latest first. */
export function AuditLog<Path extends AuditPath>({ path, parameters }: AuditLogProps<Path>) {
  const entries = useSignal<Entry[]>([]);
  const next = useSignal<string | undefined>(undefined);
  const error = useSignal<Error | undefined>(undefined);
  const is_loading = useSignal(false);
  const unmounted = useUnmountSignal();
  const load = async (before?: string) => {
    // A second click before the answer would show the same page twice.
    if (is_loading.value) return;
    is_loading.value = true;
    error.value = undefined;
    try {
      const page: Page = await get(path as AuditPath, parameters as Parameters<AuditPath>, { before }, unmounted);
      entries.value = before === undefined ? page.entries : [...entries.value, ...page.entries];
      next.value = page.next;
    } catch (caught) {
      error.value = caught instanceof Error ? caught : new Error(String(caught));
    }
    is_loading.value = false;
  };
  useEffect(() => void load(), []);
  if (error.value && entries.value.length === 0) return <Notice error={error.value} />;
  return (
    <>
      <Table heads={['Ago', 'Who', 'What', 'Details', 'From']}>
        {entries.value.map((entry) => (
          <EntryRow key={entry.entry_id} entry={entry} />
        ))}
      </Table>
      {error.value && <Notice error={error.value} />}
      {next.value !== undefined && (
        <div class="row">
          <button type="button" disabled={is_loading.value} onClick={() => void load(next.value)}>
            Earlier changes
          </button>
        </div>
      )}
    </>
  );
}

function EntryRow({
  entry: { create_ts, caller, operation, outcome, code, details, address, user_agent },
}: {
  entry: Entry;
}) {
  return (
    <tr>
      <td>
        <Age of={create_ts} />
      </td>
      <td class="whole">
        {caller.display_name ?? caller.kind}
        {caller.display_name !== undefined && <span class="quiet"> ({caller.kind})</span>}
      </td>
      <td class="whole">
        {operation} {outcome === 'failed' && <span class="badge bad">{code ?? 'failed'}</span>}
        {outcome === 'begun' && (
          <span
            class="badge warn"
            title="It is still under way, or the service stopped meanwhile: it may have happened"
          >
            begun
          </span>
        )}
      </td>
      <td class="mono wide">{Object.keys(details).length === 0 ? '' : JSON.stringify(details)}</td>
      <td class="whole" title={user_agent}>
        {address}
      </td>
    </tr>
  );
}
