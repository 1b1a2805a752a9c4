import type { Stage } from '../data/receipts.ts';

/** Stages of a request as bars on one line of time. */
export function Bars({ stages }: { stages: Stage[] }) {
  const total_ms = Math.max(1, ...stages.map(({ from_ms, ms }) => from_ms + ms));
  const share = (ms: number) => `${(100 * ms) / total_ms}%`;
  return (
    <ol class="bars card pad" aria-label="Stages">
      {stages.map(({ text, from_ms, ms }) => (
        <li key={text}>
          <span>{text}</span>
          <span class="track" aria-hidden="true">
            <span class="bar-of-stage" style={{ marginLeft: share(from_ms), width: share(ms) }} />
          </span>
          <span class="quiet">{ms.toFixed(1)} ms</span>
        </li>
      ))}
    </ol>
  );
}
