import type { ComponentChildren } from 'preact';
import { Scroll } from './scroll.tsx';

interface TableProps {
  /** The heads of its columns. One that begins with a dot is hidden, and only read aloud. */
  heads: string[];
  /** Its rows. */
  children: ComponentChildren;
}

/** A table that may be wider than a phone. */
export function Table({ heads, children }: TableProps) {
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head}>{head.startsWith('.') ? <span class="hidden">{head.slice(1)}</span> : head}</th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  );
}
