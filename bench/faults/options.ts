import { parseArgs } from 'node:util';
import type { Fault } from './fault.ts';

export interface Options {
  is_quick: boolean;
  faults: Fault[];
}

/** Reads the command line. Prints the help, or what is wrong, and exits. */
export function readOptions(words: string[], all: Fault[]): Options {
  const parsed = parse(words);
  if (parsed.is_help) {
    console.log(helpOf(all));
    process.exit(0);
  }
  const unknown = parsed.names.filter((name) => !all.some((fault) => fault.name === name));
  if (unknown.length > 0) {
    console.error(`There is no fault named ${unknown.join(', ')}: see bun bench/faults.ts --help.`);
    process.exit(2);
  }
  const faults = parsed.names.length === 0 ? all : all.filter(({ name }) => parsed.names.includes(name));
  return { is_quick: parsed.is_quick, faults };
}

function parse(words: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: words,
      allowPositionals: true,
      options: { quick: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    });
    return { is_quick: values.quick === true, is_help: values.help === true, names: positionals };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\nSee bun bench/faults.ts --help.`);
    process.exit(2);
  }
}

function helpOf(all: Fault[]): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  const lines = all.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`);
  return `Measures what one tenant, one request or a failing machine does to all others, on dist/muster (bun run build).

Usage: bun bench/faults.ts [--quick] [fault …]

  --quick   smaller sizes and shorter phases
  --help    prints this

Each fault runs against a service of its own, one after the other. While it happens, another process measures
GET /health/live and the finds of another game, beside a calm phase of the same run. The exit code is 1 when a limit
is missed, and when a fault cannot be tried: name the others then. Everything that is started is ended, and its files
are removed.

Faults, all of them without a name:

${lines.join('\n')}

The fault "disk" needs root, to mount a small disk.`;
}
