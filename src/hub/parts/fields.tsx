import type { Signal } from '@preact/signals';

interface FieldProps {
  label: string;
  value: Signal<string>;
  options: [value: string, text: string][];
}

/** A choice in a form. */
export function Field({ label, value, options }: FieldProps) {
  return (
    <label class="field">
      {label}
      <select
        value={value.value}
        onChange={({ currentTarget }) => {
          value.value = currentTarget.value;
        }}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TextFieldProps {
  label: string;
  value: Signal<string>;
  /** Takes only whole numbers from 1 to this one. */
  max?: number;
  placeholder?: string;
  is_required?: boolean;
  /** What is wrong with the text, in a sentence; empty if it can be sent. */
  problem?: string;
}

/** A text or a number in a form. */
export function TextField({ label, value, max, placeholder, is_required = false, ...others }: TextFieldProps) {
  const problem =
    max === undefined || value.value === '' || isWithin(value.value, max)
      ? (others.problem ?? '')
      : `"${label}" must be a whole number from 1 to ${max.toLocaleString('en')}.`;
  return (
    <label class="field">
      {label}
      <input
        ref={(input) => {
          input?.setCustomValidity(problem);
        }}
        type="text"
        {...(max !== undefined && { inputMode: 'numeric' })}
        autocomplete="off"
        placeholder={placeholder}
        required={is_required}
        value={value.value}
        onInput={({ currentTarget }) => {
          value.value = currentTarget.value;
        }}
      />
    </label>
  );
}

function isWithin(text: string, max: number): boolean {
  return /^[1-9][0-9]*$/.test(text) && Number(text) <= max;
}

/** A text of several lines in a form. */
export function TextArea({ label, value, placeholder }: Pick<TextFieldProps, 'label' | 'value' | 'placeholder'>) {
  return (
    <label class="field">
      {label}
      <textarea
        rows={3}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={value.value}
        onInput={({ currentTarget }) => {
          value.value = currentTarget.value;
        }}
      />
    </label>
  );
}
