import { describe, expect, test } from 'bun:test';
import { Settings } from '../../src/settings.ts';

/** A setting with its default in parentheses: "`MUSTER_MACHINE_LOST_MS` (30 s)". */
const WITH_DEFAULT =
  /(?<half>half of )?`(?<name>MUSTER_\w+)`\s\((?<text>\d[\d,.-]*)(?: (?<unit>s|min))?(?:; [^)]*)?\)/g;
const FACTORS = { s: 1_000, min: 60_000 };
/** Settings whose default depends on others, so their shapes have none. */
const DERIVED: Record<string, number> = { MUSTER_HTTPS_PORT: 443, MUSTER_HTTP_PORT: 80 };

interface Documented {
  page: string;
  name: string;
  value: string | number;
}

async function listDocumented(): Promise<Documented[]> {
  const pages = ['README.md', ...new Bun.Glob('docs/**/*.md').scanSync('.')].toSorted();
  const all = await Promise.all(
    pages.map(async (page) => {
      const text = (await Bun.file(page).text()).replaceAll(/\s+/g, ' ');
      return [...text.matchAll(WITH_DEFAULT)].map((match) => ({ page, ...readDocumented(match.groups ?? {}) }));
    }),
  );
  return all.flat();
}

function readDocumented({ half, name = '', text = '', unit }: Record<string, string | undefined>) {
  if (text.includes('-')) return { name, value: text };
  const factor = unit === 's' || unit === 'min' ? FACTORS[unit] : 1;
  return { name, value: Number(text.replaceAll(',', '')) * factor * (half === undefined ? 1 : 2) };
}

function defaultOf(name: string): unknown {
  const shape = Object.entries(Settings.properties).find(([one]) => one === name)?.[1];
  return shape && 'default' in shape ? shape.default : DERIVED[name];
}

describe('the defaults of settings in the documents', () => {
  test('are those of the service', async () => {
    const documented = await listDocumented();
    expect(documented.length).toBeGreaterThan(15);
    expect(documented).toEqual(documented.map((one) => ({ ...one, value: defaultOf(one.name) as string | number })));
  });
});
