interface FiguresProps {
  of: [name: string, value: string | number][];
  /** Below a heading, figures are a card; in the line of a heading, they stand at its end. */
  is_card?: boolean;
}

/** Numbers with their names, beside each other. */
export function Figures({ of, is_card = false }: FiguresProps) {
  return (
    <dl class={is_card ? 'figures card pad' : 'figures end'}>
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
