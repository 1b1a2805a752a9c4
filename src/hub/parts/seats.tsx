import { shareLeft, textLeft } from './time.tsx';

/** A lobby with more seats has a bar instead of squares. */
const SQUARES_MAX = 32;

interface SeatsProps {
  connected: number;
  reserved: number;
  max: number;
  /** When reserved seats were given, and when they are freed unless their players connect; where that is known. */
  times?: SeatTime[];
}

interface SeatTime {
  from: string;
  to: string;
}

/** The seats of a lobby: connected, reserved and free, a square for each. */
export function Seats({ connected, reserved, max, times = [] }: SeatsProps) {
  const free = Math.max(0, max - connected - reserved);
  const all = connected + reserved + free;
  const text = `${connected} connected, ${reserved} reserved, ${free} free`;
  return (
    <div class="seats" role="img" aria-label={text} title={text}>
      <span class="seat-count">
        {connected + reserved}/{max}
      </span>
      {all <= SQUARES_MAX ? (
        <span class="squares">
          {squares('connected', connected)}
          {times.map((time, index) => (
            <Running key={`time${index}`} {...time} />
          ))}
          {squares('reserved', reserved - times.length)}
          {squares('free', free)}
        </span>
      ) : (
        <span class="seat-bar">
          <span class="connected" style={{ width: `${(100 * connected) / all}%` }} />
          <span class="reserved" style={{ width: `${(100 * reserved) / all}%` }} />
        </span>
      )}
    </div>
  );
}

/** A reserved seat whose time runs: as much of its square is filled as is left. */
function Running({ from, to }: SeatTime) {
  const share = shareLeft(from, to);
  return <span class="reserved" title={textLeft(to)} style={{ '--left': `${(100 * share).toFixed(1)}%` }} />;
}

function squares(kind: string, count: number) {
  return Array.from({ length: count }, (_, index) => <span key={`${kind}${index}`} class={kind} />);
}
