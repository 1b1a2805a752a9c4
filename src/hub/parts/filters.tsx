import { search, setFilter } from '../data/router.ts';

interface ChoiceProps {
  name: string;
  label: string;
  /** Values, and what they are called. */
  options: [value: string, text: string][];
  /** The text of the choice without a value. */
  none?: string;
  /** Another filter, which has no meaning after a change of this one. */
  removes?: string;
}

/** A filter that is one of several values. The address keeps it. */
export function Choice({ name, label, options, none = 'all', removes }: ChoiceProps) {
  return (
    <label class="field">
      {label}
      <select
        value={search.value.get(name) ?? ''}
        onChange={({ currentTarget }) => setFilter(name, currentTarget.value, removes)}
      >
        <option value="">{none}</option>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Returns the values of a choice in order, also one that was chosen while there was something with it. */
export function withChosen(values: string[], chosen: string): string[] {
  return [...new Set(chosen === '' ? values : [...values, chosen])].sort();
}

/** A filter that is a text. The address keeps it. */
export function TextFilter({ name, label }: { name: string; label: string }) {
  return (
    <label class="field">
      {label}
      <input
        type="search"
        value={search.value.get(name) ?? ''}
        onInput={({ currentTarget }) => setFilter(name, currentTarget.value)}
      />
    </label>
  );
}
