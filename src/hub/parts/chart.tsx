import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';

const HEIGHT_PX = 180;
const FONT_PX = 11;
const FONT = `${FONT_PX}px system-ui, sans-serif`;
/** Texts of marks that are near each other stand in different rows. */
const MARK = { rows: 4, letters_max: 20 };
const SECOND_MS = 1_000;
/** Seconds between two times below a chart: it takes the first of these for which there is room. */
const TIMES_APART_S = [60, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 86_400, 172_800];
const DAY_MS = 86_400_000;
const DARK = matchMedia('(prefers-color-scheme: dark)');
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

/** The address of uPlot's script: the build puts it here. */
declare const PLOT_SCRIPT: string;

async function loadPlot(): Promise<typeof uPlot> {
  const { default: plot }: { default: typeof uPlot } = await import(PLOT_SCRIPT);
  return plot;
}

interface ChartProps {
  /** What it shows, for those who do not see it. */
  label: string;
  /** In Unix milliseconds, rising. */
  times: number[];
  lines: ChartLine[];
  marks: Mark[];
}

/** Lines over time, which are loaded when they are first shown. */
export function Chart({ label, times, lines, marks }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = useRef({ times, lines, marks });
  shown.current = { times, lines, marks };
  useEffect(() => {
    let is_wanted = true;
    const redraw = () => plot.current?.redraw();
    const resizing = new ResizeObserver(() =>
      plot.current?.setSize({ width: box.current?.clientWidth ?? 0, height: HEIGHT_PX }),
    );
    void loadPlot().then((Plot) => {
      if (!is_wanted || !box.current) return;
      plot.current = new Plot(
        optionsOf(box.current, () => shown.current),
        dataOf(shown.current),
        box.current,
      );
      resizing.observe(box.current);
      DARK.addEventListener('change', redraw);
    });
    return () => {
      is_wanted = false;
      DARK.removeEventListener('change', redraw);
      resizing.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(shown.current)), [times, lines, marks]);
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={label} style={{ height: `${HEIGHT_PX}px` }} />
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

type Shown = Pick<ChartProps, 'times' | 'lines' | 'marks'>;

function dataOf({ times, lines }: Shown): uPlot.AlignedData {
  return [times.map((time) => time / SECOND_MS), ...lines.map(({ values }) => values)];
}

function optionsOf(box: HTMLElement, shown: () => Shown): uPlot.Options {
  // A canvas knows no properties of styles, so each drawing asks for their present values.
  const colorOf = (name: string) => () => {
    box.style.color = `var(${name})`;
    return getComputedStyle(box).color;
  };
  const axis = { font: FONT, stroke: colorOf('--quiet'), grid: { stroke: colorOf('--line'), width: 1 } };
  return {
    width: box.clientWidth,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, highest) => [0, Math.max(1, highest * 1.1)] } },
    axes: [
      {
        ...axis,
        incrs: TIMES_APART_S,
        values: (_, moments) => moments.map((moment) => nameMoment(moment * SECOND_MS, shown().times)),
      },
      { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] },
    ],
    series: [
      {},
      ...shown().lines.map(({ color }) => ({ stroke: colorOf(color), width: 1.5, points: { show: false } })),
    ],
    hooks: { draw: [(plot) => drawMarks(plot, shown().marks, colorOf('--text')())] },
  };
}

function nameMoment(moment: number, times: number[]): string {
  const is_long = (times.at(-1) ?? 0) - (times[0] ?? 0) > DAY_MS;
  return (is_long ? DAY : TIME).format(moment);
}

function drawMarks(plot: uPlot, marks: Mark[], color: string): void {
  const { ctx, bbox } = plot;
  const row_height = FONT_PX * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.font = FONT.replace(`${FONT_PX}`, `${row_height}`);
  ctx.setLineDash([3, 3]);
  for (const [place, { at, text }] of marks.entries()) {
    const x = plot.valToPos(at / SECOND_MS, 'x', true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    // In the right half, the text is on the left of its line.
    const is_late = x > bbox.left + bbox.width / 2;
    ctx.textAlign = is_late ? 'right' : 'left';
    const y = bbox.top + row_height * (1 + (place % MARK.rows));
    ctx.fillText(text.slice(0, MARK.letters_max), x + (is_late ? -4 : 4), y);
  }
  ctx.restore();
}
