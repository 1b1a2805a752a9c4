import { useSignal } from '@preact/signals';
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { is_covered } from './dialog.tsx';
import { is_wide } from './width.ts';

/** Rows that are kept above and below the window, so that a quick scroll shows no gap. */
const ROWS_BEYOND = 8;

interface RowsProps<Item> {
  items: Item[];
  /** If the items are a part of a longer list: the index of the first one, and the length of that list. */
  from?: number;
  total?: number;
  /** Called with the index of the first row that is needed, when it changes. */
  onScrolledTo?(first: number): void;
  keyOf(item: Item): string;
  /** The height of each row in pixels, in a wide window and in a narrow one. */
  heights: { wide: number; narrow: number };
  label: string;
  /** Draws a row from the item alone. It is called again when the item is another object. */
  children(item: Item): ComponentChildren;
}

/** A list of rows of one height, of which only those in the window are in the document. */
export function Rows<Item>(props: RowsProps<Item>) {
  const latest = useRef(props);
  // A question that a row asks stays until it is answered, also if the row would leave the window meanwhile.
  if (!is_covered.value) latest.current = props;
  const { items, from = 0, total, onScrolledTo, keyOf, heights, label, children } = latest.current;
  const height = is_wide.value ? heights.wide : heights.narrow;
  const list = useRef<HTMLUListElement>(null);
  const first = useSignal(0);
  const shown = useSignal(Math.ceil(innerHeight / height) + 2 * ROWS_BEYOND);
  useLayoutEffect(() => {
    const measure = () => {
      if (is_covered.peek()) return;
      const top = list.current?.getBoundingClientRect().top ?? 0;
      first.value = Math.max(0, Math.floor(-top / height) - ROWS_BEYOND);
      shown.value = Math.ceil(innerHeight / height) + 2 * ROWS_BEYOND;
    };
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure, { passive: true });
    return () => {
      removeEventListener('scroll', measure);
      removeEventListener('resize', measure);
    };
  }, [height, is_covered.value]);
  const count = total ?? items.length;
  const begin = Math.min(first.value, Math.max(0, count - shown.value));
  useEffect(() => onScrolledTo?.(begin), [begin]);
  // What is not loaded yet stays empty.
  const begin_here = Math.max(0, begin - from);
  return (
    <ul ref={list} class="rows card" aria-label={label} style={{ height: `${count * height}px` }}>
      {items.slice(begin_here, Math.max(0, begin + shown.value - from)).map((item, index) => {
        const at = from + begin_here + index;
        return (
          <li
            key={keyOf(item)}
            aria-setsize={count}
            aria-posinset={at + 1}
            style={{ height: `${height}px`, transform: `translateY(${at * height}px)` }}
          >
            <Row item={item} draw={children} />
          </li>
        );
      })}
    </ul>
  );
}

interface RowProps {
  item: unknown;
  draw(item: unknown): ComponentChildren;
}

/** A row. It is drawn again only for another item, because every change of a list passes all items anew. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate({ item }: RowProps): boolean {
    return item !== this.props.item;
  }

  override render({ item, draw }: RowProps) {
    return draw(item);
  }
}
