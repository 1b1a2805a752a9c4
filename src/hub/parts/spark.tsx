const [WIDTH, HEIGHT] = [160, 32];
const DOT_RADIUS = 4;

interface SparkProps {
  values: number[];
  /** The value at the top of the line. */
  max: number;
  label: string;
}

/** A small line of values against their limit. One value is a dot. */
export function Spark({ values, max, label }: SparkProps) {
  const step = WIDTH / Math.max(1, values.length - 1);
  const heightOf = (value: number) => HEIGHT * (1 - Math.min(1, value / max));
  const points = values.map((value, index) => `${index * step},${heightOf(value)}`);
  const [first = 0, ...later] = values;
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <title>{label}</title>
      {later.length > 0 ? (
        <polyline points={points.join(' ')} />
      ) : (
        <circle cx={0} cy={heightOf(first)} r={DOT_RADIUS} />
      )}
    </svg>
  );
}
