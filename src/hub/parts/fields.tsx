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
  /** A whole number of 1 or more. */
  is_number?: boolean;
  placeholder?: string;
  is_required?: boolean;
}

/** A text or a number in a form. */
export function TextField({ label, value, is_number = false, placeholder, is_required = false }: TextFieldProps) {
  return (
    <label class="field">
      {label}
      <input
        type="text"
        {...(is_number && { inputMode: 'numeric', pattern: '[1-9][0-9]*', title: 'A whole number of 1 or more' })}
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
