import { outcome, run } from '../data/actions.ts';
import { Notice } from './notice.tsx';

/** Says at the foot of the window what the latest action did, with a way to undo it, or why it failed. */
export function Outcome() {
  const latest = outcome.value;
  const undo = latest && 'undo' in latest ? latest.undo : undefined;
  return (
    <div class="outcome" role="status">
      {latest && (
        <div class="card row">
          {'error' in latest ? <Notice error={latest.error} /> : <span>{latest.done}</span>}
          {undo && (
            <button
              type="button"
              class="small"
              onClick={() => {
                // The button goes away, so that nothing is undone twice.
                outcome.value = undefined;
                void run(undo.done, undo.act);
              }}
            >
              Undo
            </button>
          )}
          <button
            type="button"
            class="small"
            onClick={() => {
              outcome.value = undefined;
            }}
          >
            Close
          </button>
        </div>
      )}
    </div>
  );
}
