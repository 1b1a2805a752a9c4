import { useSignal } from '@preact/signals';
import { shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { describeRequest, type Receipt } from '../data/receipts.ts';
import { goTo, search } from '../data/router.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { Choice, withChosen } from '../parts/filters.tsx';
import { Notice } from '../parts/notice.tsx';
import { Rows } from '../parts/rows.tsx';
import { Age } from '../parts/time.tsx';

const RECEIPTS = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/receipts';
const ROW_HEIGHTS = { wide: 48, narrow: 80 };

/** The latest requests for seats, by default those that were refused, and the way to one by its ray id. */
export function ReceiptsPage() {
  const { game, namespace, scope } = useNamespace();
  const filters = search.value;
  const is_all = filters.get('show') === 'all';
  const code = filters.get('code') ?? '';
  const watched = useWatched(RECEIPTS, scope, {
    ...(!is_all && { is_refused: 'true' }),
    ...(code !== '' && { code }),
  }).value;
  useTitle(`Why · ${namespace.name_id} · ${game.display_name}`);
  if (watched.is === 'refused') return <Notice error={watched.error} />;
  const receipts = watched.is === 'here' ? watched.body.receipts : [];
  const codes = withChosen(
    receipts.flatMap(({ outcome }) => outcome.code ?? []),
    code,
  );
  return (
    <>
      <div class="head">
        <h1>Why</h1>
        <p class="quiet">What the matchmaker decided in the last hour, and why.</p>
      </div>
      <div class="row filters">
        <RayField />
        <Choice name="show" label="Show" options={[['all', 'also those that got a seat']]} none="refused" />
        <Choice name="code" label="Reason" options={codes.map((one) => [one, one])} />
        <p class="quiet end">{watched.is === 'here' ? `the latest ${receipts.length}` : 'Loading …'}</p>
      </div>
      {watched.is === 'here' && receipts.length === 0 && (
        <p class="card pad">{describeNone({ is_all, code })} New ones appear here.</p>
      )}
      {receipts.length > 0 && (
        <Rows items={receipts} keyOf={({ ray_id }) => ray_id} heights={ROW_HEIGHTS} label="Requests">
          {(receipt) => <ReceiptRow receipt={receipt} />}
        </Rows>
      )}
    </>
  );
}

/** Returns a sentence that no request matches the filters. */
function describeNone({ is_all, code }: { is_all: boolean; code: string }): string {
  if (code !== '') return `No request was refused for ${code} in the last hour.`;
  return is_all ? 'No request was made in the last hour.' : 'No request was refused in the last hour.';
}

/** Goes to the explanation of a request by its ray id. */
function RayField() {
  const hrefTo = useHref();
  const ray_id = useSignal('');
  const go = (event: Event) => {
    event.preventDefault();
    const id = ray_id.value.trim();
    if (id !== '') goTo(hrefTo({ page: 'why', id }));
  };
  return (
    <form onSubmit={go}>
      <label class="field">
        Ray id of an answer
        <input
          type="search"
          placeholder="paste it, then Enter"
          value={ray_id.value}
          onInput={({ currentTarget }) => {
            ray_id.value = currentTarget.value;
          }}
        />
      </label>
    </form>
  );
}

function ReceiptRow({ receipt }: { receipt: Receipt }) {
  const hrefTo = useHref();
  const { ray_id, create_ts, outcome, stages_ms } = receipt;
  return (
    <div class="receipt">
      <a class="mono" href={hrefTo({ page: 'why', id: ray_id })}>
        {shortId(ray_id)}
      </a>
      <span class={`cut ${outcome.code === undefined ? 'good' : 'bad'}`}>
        {outcome.code ?? `a seat in ${outcome.is_new === true ? 'a new lobby' : 'a running lobby'}`}
      </span>
      <span class="cut quiet">{describeRequest(receipt)}</span>
      <span class="quiet">{Math.round(stages_ms.answered)} ms</span>
      <span class="quiet age">
        <Age of={create_ts} />
      </span>
    </div>
  );
}
