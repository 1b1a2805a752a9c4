const [WIDTH, HEIGHT] = [160, 32];

interface SparkProps {
  values: number[];
  /** The value at the top of the line. */
  max: number;
  label: string;
}

/** A small line of values against their limit. */
export function Spark({ values, max, label }: SparkProps) {
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, index) => `${index * step},${HEIGHT * (1 - Math.min(1, value / max))}`);
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <title>{label}</title>
      <polyline points={points.join(' ')} />
    </svg>
  );
}
