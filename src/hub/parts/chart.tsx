import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { MINUTE_MS } from '../../shared/units.ts';

/** The room around the lines for the texts of the axes. */
const MARGIN_PX = { left: 50, right: 16, top: 10, bottom: 22 };
/** The least distance of two values, and of two times, at their axes. */
const APART_PX = { values: 34, times: 64 };
/** Texts of marks that are near each other stand in different rows; where a row is taken, a mark has no text. */
const MARK = { rows: 4, row_px: 13, letters_max: 20, width_px: 130 };
/** Times at the axis are this far apart: the first of these for which there is room. */
const TIMES_APART_MIN = [1, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1_440, 2_880];
const DAY_MIN = 1_440;
const TIME = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const DAY = new Intl.DateTimeFormat([], { weekday: 'short', day: 'numeric' });

/** A line of a chart. The color is the name of a property of the page's styles. */
export interface ChartLine {
  name: string;
  color: string;
  values: number[];
}

/** A moment that a chart marks. */
export interface Mark {
  at: number;
  text: string;
}

interface ChartProps {
  /** What it shows, for those who do not see it. */
  label: string;
  /** In Unix milliseconds, rising. */
  times: number[];
  lines: ChartLine[];
  /** In the order of their importance: if there is no room for all texts, later marks have none. */
  marks?: Mark[];
  /** Writes a value at the axis. */
  write?(value: number): string;
  height_px?: number;
}

/** Lines over time, as wide as there is room. */
export function Chart({ lines, ...drawn }: ChartProps) {
  const box = useRef<HTMLElement>(null);
  const width = useSignal(0);
  useLayoutEffect(() => {
    const measure = () => {
      width.value = box.current?.clientWidth ?? 0;
    };
    measure();
    const resizing = new ResizeObserver(measure);
    if (box.current) resizing.observe(box.current);
    return () => resizing.disconnect();
  }, []);
  return (
    <figure ref={box} class="chart">
      <Drawing {...drawn} lines={lines} width={width.value} />
      <figcaption class="row quiet">
        {lines.map(({ name, color }) => (
          <span key={name}>
            <span class="chart-line" style={{ background: `var(${color})` }} /> {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function Drawing(props: ChartProps & { width: number }) {
  const { label, times, lines, marks = [], write = String, height_px = 180, width } = props;
  const [begin = 0, end = 0] = [times[0], times.at(-1)];
  const highest = Math.max(1, ...lines.flatMap(({ values }) => values)) * 1.1;
  const across = Math.max(0, width - MARGIN_PX.left - MARGIN_PX.right);
  const down = height_px - MARGIN_PX.top - MARGIN_PX.bottom;
  const xOf = (time: number) => MARGIN_PX.left + (across * (time - begin)) / Math.max(1, end - begin);
  const yOf = (value: number) => MARGIN_PX.top + down * (1 - value / highest);
  const bottom = yOf(0);
  return (
    <svg role="img" aria-label={label} width={width} height={height_px}>
      {roundValues(highest, down / APART_PX.values).map((value) => (
        <g key={value}>
          <line x1={MARGIN_PX.left} x2={width - MARGIN_PX.right} y1={yOf(value)} y2={yOf(value)} />
          <text x={MARGIN_PX.left - 6} y={yOf(value) + 4} text-anchor="end">
            {write(value)}
          </text>
        </g>
      ))}
      {roundTimes(begin, end, across / APART_PX.times).map((time) => (
        <text key={time} x={xOf(time)} y={height_px - 6} text-anchor="middle">
          {(isLong(begin, end) ? DAY : TIME).format(time)}
        </text>
      ))}
      {lines.map(({ name, color, values }) => (
        <polyline
          key={name}
          style={{ stroke: `var(${color})` }}
          points={pointsOf(values.map((value, index) => `${xOf(times[index] ?? end)},${yOf(value)}`))}
        />
      ))}
      {marks.map(({ at, text }, index) => {
        const x = xOf(at);
        // In the right half, the text is on the left of its line.
        const is_late = x > width / 2;
        const before = marks[index - MARK.rows];
        const has_room = before === undefined || Math.abs(x - xOf(before.at)) > MARK.width_px;
        return (
          <g key={`${at} ${text}`} class="chart-mark">
            <line x1={x} x2={x} y1={MARGIN_PX.top} y2={bottom} />
            {has_room && (
              <text
                x={x + (is_late ? -4 : 4)}
                y={MARGIN_PX.top + MARK.row_px * (1 + (index % MARK.rows))}
                text-anchor={is_late ? 'end' : 'start'}
              >
                {text.slice(0, MARK.letters_max)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** Returns the points of a line. A single one is drawn as a dot, which needs an end, too. */
function pointsOf(points: string[]): string {
  return (points.length === 1 ? [...points, ...points] : points).join(' ');
}

/** Returns values from 0 to the highest one that are 1, 2 or 5 times a power of ten apart. */
function roundValues(highest: number, count_max: number): number[] {
  const power = 10 ** Math.floor(Math.log10(highest / count_max));
  const apart = Math.max(1, power * ([1, 2, 5].find((times) => highest / (power * times) <= count_max) ?? 10));
  return Array.from({ length: Math.floor(highest / apart) + 1 }, (_, index) => index * apart);
}

/** Returns whether days are named at the axis instead of hours. */
function isLong(begin: number, end: number): boolean {
  return end - begin > DAY_MIN * MINUTE_MS;
}

/** Returns full hours, days and the like between two moments, by the clock here. */
function roundTimes(begin: number, end: number, count_max: number): number[] {
  const least = isLong(begin, end) ? DAY_MIN : 0;
  const minutes = TIMES_APART_MIN.find((one) => one >= least && (end - begin) / (one * MINUTE_MS) <= count_max);
  if (minutes === undefined) return [];
  const apart = minutes * MINUTE_MS;
  const offset = new Date(end).getTimezoneOffset() * MINUTE_MS;
  const first = Math.ceil((begin - offset) / apart) * apart + offset;
  return Array.from(
    { length: Math.max(0, Math.floor((end - first) / apart) + 1) },
    (_, index) => first + index * apart,
  );
}
