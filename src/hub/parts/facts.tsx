import type { ComponentChildren } from 'preact';

type Fact = [name: string, value: ComponentChildren];

/** Names and values, below each other. Leaves out entries that are false or undefined. */
export function Facts({ of }: { of: (Fact | false | undefined)[] }) {
  const facts = of.filter((fact): fact is Fact => Array.isArray(fact));
  return (
    <dl class="facts card pad">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
