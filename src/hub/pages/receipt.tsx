import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { PASSED_OVER } from '../../shared/receipt-texts.ts';
import { useAction } from '../data/actions.ts';
import { get } from '../data/api.ts';
import { may_act } from '../data/bearer.ts';
import { shortId, useHref, useNamespace, versionName } from '../data/namespaces.ts';
import { isRepeatable, repeatRequest } from '../data/players.ts';
import { describeRequest, errorHref, type Receipt, stagesOf } from '../data/receipts.ts';
import { Refused } from '../data/request.ts';
import { goTo } from '../data/router.ts';
import { useUnmountSignal } from '../data/unmount-signal.ts';
import { useTitle } from '../data/watched.ts';
import { Bars } from '../parts/bars.tsx';
import { Facts } from '../parts/facts.tsx';
import { LobbyLink } from '../parts/lobby-link.tsx';
import { Notice } from '../parts/notice.tsx';
import { OutboundExchange } from '../parts/outbound-exchange.tsx';
import { RefusedPage } from '../parts/refused.tsx';
import { Section } from '../parts/section.tsx';
import { Table } from '../parts/table.tsx';
import { Age, momentOf } from '../parts/time.tsx';

const ONE = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/receipts/{ray_id}';
/** A receipt that is missing is read again, as it may be about to be written. */
const AGAIN_AFTER_MS = 500;
const ATTEMPTS_MAX = 5;

/** One request for a seat: what it asked for, what was decided and why, and how long each stage took. */
export function ReceiptPage({ id }: { id: string }) {
  const { game, namespace } = useNamespace();
  const found = useReceipt(id).value;
  useTitle(`Why ${shortId(id)} · ${game.display_name}`);
  if (found === undefined) return <p class="quiet">Loading …</p>;
  if (found instanceof Error) return <NoReceipt error={found} />;
  const receipt = found;
  const { outcome, create_ts, version_id, rounds, captcha, verification } = receipt;
  return (
    <>
      <div class="head">
        <h1>
          {outcome.code === undefined ? (
            <>A {outcome.is_new === true ? 'new lobby' : 'seat'}</>
          ) : (
            <>
              Refused: <a href={errorHref(outcome.code)}>{outcome.code}</a>
            </>
          )}
        </h1>
        <div class="end">
          <TryAgain receipt={receipt} />
        </div>
      </div>
      <Facts
        of={[
          ['Request', describeRequest(receipt)],
          outcome.lobby_id !== undefined && ['Outcome', <LobbyLink key="lobby" lobby_id={outcome.lobby_id} />],
          ['When', <Ago key="when" of={create_ts} />],
          [
            'Version',
            `${versionName(game, version_id)}${version_id === namespace.version_id ? '' : ' (not the live one)'}`,
          ],
          captcha && ['Captcha', describeCaptcha(captcha)],
          verification && ['Verification', describeVerification(verification)],
          rounds > 1 && ['Rounds', `${rounds}: it was decided ${rounds - 1} more ${rounds === 2 ? 'time' : 'times'}`],
          ['Ray id', <code key="ray">{receipt.ray_id}</code>],
        ]}
      />
      <section class="stack" aria-label="Time">
        <h2>Answered in {receipt.stages_ms.answered.toFixed(1)} ms</h2>
        <Bars stages={stagesOf(receipt)} />
      </section>
      <OutboundExchange title="Captcha" of={captcha?.exchange} failure={captcha?.reasons?.[0]} />
      <OutboundExchange title="Verification" of={verification?.exchange} failure={verification?.failure} />
      <TryVerification receipt={receipt} />
      <Considered of={receipt} />
    </>
  );
}

/** Leads to the form that asks the verification server again, filled in as this request was. */
function TryVerification({ receipt: { kind, request, verification } }: { receipt: Receipt }) {
  const hrefTo = useHref();
  if (!verification || !may_act.value) return null;
  const { tags, players, max_players } = request;
  const lobby_id = verification.lobby_id ?? request.lobby_id;
  const filters = {
    kind,
    game_mode: verification.game_mode_id,
    ...(lobby_id !== undefined && { lobby_id }),
    ...(tags && { tags: JSON.stringify(tags) }),
    ...(players > 1 && { players: String(players) }),
    ...(max_players !== undefined && { max_players: String(max_players) }),
  };
  return (
    <p>
      <a href={hrefTo({ page: 'settings' }, filters)}>Ask the verification server again</a>
    </p>
  );
}

/** Reads a receipt, which never changes once it is there. Another process may write it up to a second after the answer. */
function useReceipt(ray_id: string): Signal<Receipt | Error | undefined> {
  const { scope } = useNamespace();
  const receipt = useMemo(() => signal<Receipt | Error | undefined>(undefined), [ray_id]);
  const unmounted = useUnmountSignal(ray_id);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (attempts_left: number) => {
      const answer = await get(ONE, { ...scope, ray_id }, {}, unmounted).catch((error: Error) => error);
      if (unmounted.aborted) return;
      if (isMissing(answer) && attempts_left > 0) {
        timer = setTimeout(() => void read(attempts_left - 1), AGAIN_AFTER_MS);
      } else receipt.value = answer instanceof Error ? answer : answer.receipt;
    };
    void read(ATTEMPTS_MAX);
    return () => clearTimeout(timer);
  }, [ray_id]);
  return receipt;
}

function isMissing(answer: unknown): boolean {
  return answer instanceof Refused && answer.code === 'MATCHMAKER_RECEIPT_NOT_FOUND';
}

function NoReceipt({ error }: { error: Error }) {
  if (!isMissing(error)) return <RefusedPage error={error} what="request" />;
  return (
    <>
      <Notice error={error} />
      <p>
        Receipts are kept for an hour, and of at most MUSTER_RECEIPTS_PER_SECOND_MAX requests a second (50 by default).
        The ray id of an answer is in its header <code>rvt-ray-id</code>.
      </p>
    </>
  );
}

function Ago({ of }: { of: string }) {
  return (
    <>
      {momentOf(of)}, <Age of={of} /> ago
    </>
  );
}

function Considered({ of: { considered, outcome } }: { of: Receipt }) {
  if (considered.length === 0) return <p class="quiet">No lobby was considered.</p>;
  return (
    <Section title="Considered lobbies">
      <Table heads={['Lobby', 'Game mode', 'Region', 'Seats taken', 'Why']}>
        {considered.map(({ lobby_id, game_mode_id, region_id, player_count, passed_over }) => (
          <tr key={lobby_id}>
            <td>
              <LobbyLink lobby_id={lobby_id} />
            </td>
            <td>{game_mode_id}</td>
            <td>{region_id}</td>
            <td>{player_count}</td>
            <td>
              {passed_over !== undefined ? (
                PASSED_OVER[passed_over]
              ) : (
                <strong>{lobby_id === outcome.lobby_id ? 'chosen' : 'planned'}</strong>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

/** Sends the same request once more from this browser. If it is refused, goes to its receipt. */
function TryAgain({ receipt }: { receipt: Receipt }) {
  const { scope } = useNamespace();
  const hrefTo = useHref();
  const { is_busy, act } = useAction();
  const unmounted = useUnmountSignal();
  if (!may_act.value || !isRepeatable(receipt)) return null;
  const again = () =>
    act('The request got a seat.', async () => {
      try {
        await repeatRequest(scope, receipt);
      } catch (error) {
        if (!(error instanceof Refused) || error.ray_id === undefined || unmounted.aborted) throw error;
        goTo(hrefTo({ page: 'why', id: error.ray_id }));
        throw error;
      }
    });
  return (
    <button type="button" disabled={is_busy.value} onClick={() => void again()}>
      Try again
    </button>
  );
}

function describeCaptcha({ decision, provider, reasons = [] }: NonNullable<Receipt['captcha']>): string {
  const words = decision.replaceAll('_', ' ');
  const by = provider === undefined ? '' : ` by ${provider}`;
  return `${words}${by}${reasons.length > 0 ? ` (${reasons.join(', ')})` : ''}`;
}

function describeVerification({ is_accepted, status, failure }: NonNullable<Receipt['verification']>): string {
  const answer = failure ?? (status === undefined ? 'no answer' : `status ${status}`);
  return `${is_accepted ? 'accepted' : 'refused'} (${answer})`;
}
