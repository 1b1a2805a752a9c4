import { afterAll, describe, expect, test } from 'bun:test';
import { basename, dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { LEVELS } from '../src/platform/events.ts';
import { Settings } from '../src/settings.ts';

const ROOT = resolve(import.meta.dir, '..');
/** Longer files are listed as advice, because they may hold two ideas. */
const LINES_ADVISED_MAX = 300;
const LINE_LENGTH_MAX = 120;
/** Pages that are generated, or whose tables a test compares with the code. */
const WIDE_PAGES = new Set(['docs/errors.md', 'docs/tokens.md', 'docs/isolation-attempts.md', 'docs/servers.md']);
/** A variable of a shell, and those of the tests. */
const NOT_SETTINGS = /^MUSTER_(PID$|TEST_)/;
/** Names that do not say what a file holds. */
const VAGUE_NAMES = /^(index|utils?|helpers?|types|common|misc|.*-?manager)\.tsx?$/;

/** Words and phrases that plain English says in another way: things are "it", and a caller or a player has a name. */
const UNCLEAR = [
  /\bwhoever\b/i,
  /(?<![`'"])\b(nobody|somebody|everybody|anybody)\b/i,
  /\b(he|him|his|himself)\b/i,
  /\bit is (looked|asked|counted|seen)\b/i,
  /\bthe same (of|to)\b/i,
  /\btold\b/i,
  /\bso many\b/i,
  /\bas it stands\b/i,
  /\bwhat (came|became|comes) of\b/i,
  /\bis said\b/i,
];

interface Import {
  from: string;
  to: string;
  /** A path, or the name of a package. */
  specifier: string;
}

/** A link of a page to another file of the repository, or to a place of the page itself. */
interface Link {
  page: string;
  to: string;
  anchor: string;
}

const files = listFiles('{src,tests,bench,examples,.ci}/**/*.{ts,tsx}');
const sources = files.filter((path) => path.startsWith('src/'));
const pages = ['docs/**/*.md', 'bench/*.md', '*.md'].flatMap(listFiles);
const imports: Import[] = sources.flatMap(importsOf);
const local = imports.filter(({ specifier }) => specifier.startsWith('.'));

describe('the house is tidy', () => {
  test('the sources were found', () => {
    expect(sources.length).toBeGreaterThan(100);
    expect(local.length).toBeGreaterThan(300);
    expect(pages.length).toBeGreaterThan(50);
  });

  test('arrows between layers point downwards: main → commands → service → composition, front, base, local-parts → features → platform; commands → cli → terminal', () => {
    const names = sources.map(layerOf);
    expect(names.filter((name) => !LAYERS.includes(name) && !APART.includes(name))).toEqual([]);
    expect(local.filter(({ from, to }) => !mayUseLayer(from, to))).toEqual([]);
  });

  test('the client is for browsers: it imports only its own files and uses nothing that only Bun or Node has', () => {
    const isOfClient = (path: string) => path.startsWith('src/client/');
    const client = sources.filter(isOfClient);
    expect(client.length).toBeGreaterThan(3);
    const others = imports.filter(({ from, to }) => isOfClient(from) !== isOfClient(to));
    expect(others.filter(({ from }) => !/^src\/(hub|cli)\//.test(from))).toEqual([]);
    expect(client.filter(usesBun)).toEqual([]);
  });

  test('what the commands, the hub and the platform share is for browsers too: it imports one library and its own files', () => {
    const isShared = (path: string) => path.startsWith('src/shared/');
    const shared = sources.filter(isShared);
    expect(shared.length).toBeGreaterThan(2);
    expect(imports.filter(({ from, to }) => isShared(from) && to !== 'ignore' && !isShared(to))).toEqual([]);
    const users = /^src\/(hub|cli|terminal|platform|shared)\//;
    expect(imports.filter(({ from, to }) => isShared(to) && !users.test(from))).toEqual([]);
    expect(shared.filter(usesBun)).toEqual([]);
  });

  test('the hub is for browsers: it imports only its own files, the client, what it shares with commands and its libraries, and nothing imports it', () => {
    const isOfHub = (path: string) => path.startsWith('src/hub/');
    const hub = imports.filter(({ from }) => isOfHub(from));
    expect(hub.length).toBeGreaterThan(20);
    const allowed =
      /^(src\/hub\/|src\/client\/(client|rows|wire)\.ts$|src\/shared\/|preact|@preact\/signals$|ansi-sequence-parser$|altcha-lib|bcryptjs$|modern-tar$)/;
    expect(hub.filter(({ to }) => !allowed.test(to))).toEqual([]);
    expect(imports.filter(({ from, to }) => isOfHub(to) && !isOfHub(from))).toEqual([]);
  });

  test('inside a feature: feature → routes → public API → store → tables; rules import none of these', () => {
    const within = local.filter(({ from, to }) => featureOf(from) !== undefined && featureOf(from) === featureOf(to));
    // The shapes of answers are made from rows, whose types stores declare.
    const isOfRowTypes = (one: Import) => /^(.*-)?wire$/.test(roleOf(one.from)) && isOfTypesOnly(one);
    expect(within.filter((one) => !mayUseRole(one.from, one.to) && !isOfRowTypes(one))).toEqual([]);
  });

  test('a feature imports only public APIs and shapes of others, and tables may reference tables', () => {
    expect(betweenFeatures().filter(({ from, to }) => !mayCross(from, to))).toEqual([]);
  });

  test('every feature is composed in its feature.ts, and composition.ts alone imports that', () => {
    const composed = local.filter(({ to }) => featureOf(to) !== undefined && roleOf(to) === 'feature');
    expect(composed.length).toBeGreaterThan(15);
    expect(composed.filter(({ from }) => from !== 'src/composition.ts')).toEqual([]);
    const features = new Set(sources.map(featureOf).filter((feature) => feature !== undefined));
    const paths = [...features].map((feature) => `src/features/${feature}/feature.ts`);
    expect(paths.filter((path) => !composed.some(({ to }) => to === path))).toEqual([]);
  });

  test('features do not import each other in a circle', () => {
    const calls = betweenFeatures().filter(({ from }) => roleOf(from) !== 'tables');
    expect(findCircle(calls)).toEqual([]);
  });

  test('files of a feature do not import each other in a circle', () => {
    const within = local.filter(({ from, to }) => featureOf(from) !== undefined && featureOf(from) === featureOf(to));
    expect(within.length).toBeGreaterThan(100);
    expect(findCircle(within, (path) => path)).toEqual([]);
  });

  test('rules take no clock, no random numbers, no network and no database', () => {
    const impure = /\bnew Date\(\)|\bDate\.now|\bperformance\.|\bMath\.random|\bcrypto\.|\bfetch\(|\bBun\.|\bprocess\./;
    const rules = sources.filter((path) => /^((.+-)?rules|planner|queue-order|lobby-index)\.ts$/.test(basename(path)));
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter((path) => impure.test(read(path)))).toEqual([]);
    const outside = /drizzle|postgres|^bun\b|^(node:)?(os|fs|net|dns|http|https|child_process|crypto|timers)\b/;
    expect(imports.filter(({ from, specifier }) => rules.includes(from) && outside.test(specifier))).toEqual([]);
  });

  test('only config.ts and cli/environment.ts read the environment', () => {
    const readers = sources.filter((path) => /\b(process|Bun)\.env\b/.test(read(path)));
    expect(readers.toSorted()).toEqual(['src/cli/environment.ts', 'src/config.ts']);
  });

  test('only platform/database imports a driver or the embedded PostgreSQL', () => {
    const drivers = imports.filter(({ specifier }) =>
      /^(postgres|drizzle-orm\/(postgres-js|migrator).*)$/.test(specifier),
    );
    expect(drivers.length).toBeGreaterThan(0);
    const strangers = [...drivers, ...local.filter(({ to }) => to.endsWith('/embedded.ts'))];
    expect(strangers.filter(({ from }) => !from.startsWith('src/platform/database/'))).toEqual([]);
  });

  test('only the route table adds routes: only platform/http imports Elysia', () => {
    const elysia = imports.filter(({ specifier }) => /^(elysia|@elysiajs\/.*)$/.test(specifier));
    expect(elysia.filter(({ from }) => !from.startsWith('src/platform/http/'))).toEqual([]);
  });

  test('file names are specific', () => {
    expect(files.filter((path) => VAGUE_NAMES.test(basename(path)))).toEqual([]);
    expect(files.filter((path) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.tsx?$/.test(basename(path)))).toEqual([]);
  });

  test('objects and lists are written out: no literal is spread into another one', () => {
    expect(files.filter((path) => /\.\.\.[[{]/.test(read(path))).flatMap(spreadLiteralsOf)).toEqual([]);
  });

  test('comments, messages and docs are in plain English', () => {
    const own = relative(ROOT, import.meta.path);
    const texts = [...files.filter((path) => path !== own), ...pages];
    expect(texts.length).toBeGreaterThan(500);
    const unclear = texts.flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, index) =>
          UNCLEAR.some((one) => one.test(line)) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
        ),
    );
    expect(unclear).toEqual([]);
  });

  test('every file that docs/architecture.md and docs/files.md name exists', () => {
    const paths = [...files, ...listFiles('docs/**/*.md')].map((path) => `/${path}`);
    const named = `${read('docs/architecture.md')}${read('docs/files.md')}`.matchAll(/`([\w./-]+\.ts)`/g);
    const names = [...named].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(100);
    expect(names.filter((name) => !paths.some((path) => path.endsWith(`/${name}`)))).toEqual([]);
  });

  test('every function that the invariants of docs/architecture.md name is in the file or class that they name', () => {
    const [, section = ''] = read('docs/architecture.md').split('\n## Invariants\n');
    const [invariants = ''] = section.split('\n## ');
    const named = [...invariants.matchAll(/`(?:[\w-]+\/)*([\w-]+)\.(\w+)`/g)].filter(([, , name]) => name !== 'ts');
    expect(named.length).toBeGreaterThan(25);
    const isThere = (owner = '', name = '') =>
      sources.some((path) => {
        const is_owner = basename(path, '.ts') === owner || new RegExp(`\\b(class|const) ${owner}\\b`).test(read(path));
        return is_owner && new RegExp(`\\b${name}\\b`).test(read(path));
      });
    expect(named.filter(([, owner, name]) => !isThere(owner, name)).map(([text]) => text)).toEqual([]);
  });

  test('docs/files.md names every folder of src/features and src/platform', () => {
    const page = read('docs/files.md');
    const folders = sources.flatMap((path) => path.match(/^src\/(?:features|platform)\/(.+\/)/)?.[1] ?? []);
    expect(folders.length).toBeGreaterThan(50);
    // A folder inside another one may be named by its own name, as the runtimes of servers are.
    const isNamed = (path: string) => page.includes(`\`${path}\``) || page.includes(`/${basename(path)}/`);
    expect([...new Set(folders)].filter((path) => !isNamed(path))).toEqual([]);
  });

  test('the table of loops in docs/architecture.md has every loop, and no other', () => {
    const [, section = ''] = read('docs/architecture.md').split('\n## Background work\n');
    const [table = ''] = section.split('\n## ');
    const listed = [...table.matchAll(/^\| `([a-z-]+)` /gm)].map(([, name]) => name ?? '');
    const loops = sources.filter((path) => path !== 'src/platform/loop.ts').flatMap((path) => loopsOf(read(path)));
    expect(loops.length).toBeGreaterThan(40);
    expect([...new Set(loops)].toSorted()).toEqual(listed.toSorted());
  });

  test('docs/files.md names every file of src/platform', () => {
    const page = read('docs/files.md');
    const own = sources.flatMap((path) => path.match(/^src\/platform\/(.+)$/)?.[1] ?? []);
    expect(own.length).toBeGreaterThan(100);
    const isNamed = (path: string) => page.includes(`\`${path}\``) || page.includes(`\`${basename(path)}\``);
    expect(own.filter((path) => !isNamed(path))).toEqual([]);
  });

  test('pages name every setting, and no other', () => {
    const text = ['docs/*.md', 'README.md'].flatMap(listFiles).map(read).join('\n');
    const settings = Object.keys(Settings.properties);
    // A name that ends with … stands for all that begin with it.
    const named = [...new Set(text.match(/\bMUSTER_[A-Z0-9_]+…?/g) ?? [])];
    const prefixes = named.flatMap((name) => (name.endsWith('…') ? [name.slice(0, -1)] : []));
    const isNamed = (setting: string) =>
      text.includes(`\`${setting}`) || prefixes.some((prefix) => setting.startsWith(prefix));
    expect(settings.length).toBeGreaterThan(50);
    expect(settings.filter((setting) => !isNamed(setting))).toEqual([]);
    const code = sources.map(read).join('\n');
    const isKnown = (name: string) => code.includes(name.replace('…', ''));
    expect(named.filter((name) => !isKnown(name) && !NOT_SETTINGS.test(name))).toEqual([]);
  });

  test('docs/monitoring.md has every event, with its level', () => {
    const levels: Record<string, string> = LEVELS;
    const page = read('docs/monitoring.md');
    const [, section = ''] = page.split('\nThe other events, by level:\n\n');
    const [list = ''] = section.split('\n\n');
    const listed = list.split('\n- ').flatMap((item) => {
      const [level = ''] = item.replace(/^- /, '').split(':');
      return [...item.matchAll(/`(\w+)`/g)].map(([, name = '']) => ({ name, level }));
    });
    expect(listed.length).toBeGreaterThan(30);
    expect(listed.filter(({ name, level }) => levels[name] !== level)).toEqual([]);
    expect(Object.keys(levels).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  test('relative links of pages lead to a file, and to a heading or an anchor there', () => {
    const links = pages.flatMap(linksOf);
    expect(links.length).toBeGreaterThan(200);
    expect(links.filter((link) => !leadsSomewhere(link))).toEqual([]);
  });

  test('lines of written pages wrap at 120 characters', () => {
    const written = pages.filter((path) => !WIDE_PAGES.has(path));
    expect(written.length).toBeGreaterThan(7);
    const long = written.flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, index) => (line.length > LINE_LENGTH_MAX ? [`${path}:${index + 1} (${line.length})`] : [])),
    );
    expect(long).toEqual([]);
  });

  test('a test that needs a program or a server is skipped without it, and not left out, so that a run counts it', () => {
    const suites = files.filter((path) => path.endsWith('.test.ts'));
    expect(suites.length).toBeGreaterThan(400);
    const left_out = /^( *)if \(.*\) (?:\{\n(?:\1 .*\n|\n)*?\1 {2})?(?:test|describe)\b/m;
    expect(suites.filter((path) => left_out.test(read(path)))).toEqual([]);
  });

  test('every decision page has a number of its own, and its title in the index', () => {
    const decisions = listFiles('docs/decisions/*.md').filter((path) => basename(path) !== 'README.md');
    expect(decisions.length).toBeGreaterThan(0);
    const names = decisions.map((path) => basename(path));
    expect(names.filter((name) => !/^\d{4}-[a-z0-9-]+\.md$/.test(name))).toEqual([]);
    expect(new Set(names.map((name) => name.slice(0, 4))).size).toBe(names.length);
    const index = read('docs/decisions/README.md').replaceAll(/\s+/g, ' ');
    const isListed = (path: string) => {
      const [, title = ''] = /^# \d{4} (.+)$/m.exec(read(path)) ?? [];
      return index.includes(`${basename(path).slice(0, 4)} [${title}](${basename(path)})`);
    };
    expect(decisions.filter((path) => !isListed(path))).toEqual([]);
  });
});

afterAll(() => {
  for (const path of files) {
    const lines = read(path).trimEnd().split('\n').length;
    if (lines > LINES_ADVISED_MAX) console.info(`advice: ${path} has ${lines} lines. Does it hold two ideas?`);
  }
});

const LAYERS = [
  'main',
  'commands',
  'service',
  'composition',
  'front',
  'public-ports',
  'base',
  'local-parts',
  'features',
  'config',
  'domains',
  'tls-settings',
  'setting-texts',
  'throwaway-settings',
  'settings',
  'platform',
  'default-data-directory',
  'shared',
];

/** Names of `src` that are in no layer, since other tests check their imports, or they import nothing. */
const APART = ['cli', 'terminal', 'client', 'hub', 'launch', 'assets.d'];

/** Documents that code reads. A test compares each with the code that it was generated from. */
const GENERATED = new Set(['docs/muster.schema.json']);

/** Features receive settings as values, so they do not import the configuration. */
function mayUseLayer(from: string, to: string): boolean {
  if (basename(to) === 'package.json' || GENERATED.has(to)) return true;
  const [above, below] = [layerOf(from), layerOf(to)];
  if (above === 'features' && (below === 'config' || below === 'settings')) return false;
  // Commands that talk to a service know only its API.
  if (above === 'cli') return ['cli', 'terminal', 'client', 'shared', 'default-data-directory'].includes(below);
  if (below === 'cli') return above === 'commands';
  if (above === 'terminal') return ['terminal', 'shared'].includes(below);
  if (below === 'terminal') return above === 'commands';
  return LAYERS.indexOf(above) <= LAYERS.indexOf(below);
}

/** Returns whether a file uses something that only Bun or Node has. */
function usesBun(path: string): boolean {
  return /\b(Bun|process|Buffer)\./.test(read(path));
}

function layerOf(path: string): string {
  return (path.split('/')[1] ?? '').replace('.ts', '');
}

/** The files of its own feature that a file must not import. */
const NEVER: Record<string, RegExp> = {
  tables: /^(?!config$)/,
  wire: /^(.*routes|.*store|reconcile|public-api|rules)$/,
  store: /^(?!tables|store|.*-store)/,
  rules: /^(routes|store|.*-store|reconcile|public-api)$/,
  routes: /^(store|.*-store|tables|reconcile)$/,
};

function mayUseRole(from: string, to: string): boolean {
  const [user, used] = [roleOf(from), roleOf(to)];
  if (used === 'feature') return false;
  if (used.endsWith('routes')) return user === 'feature';
  const kind = ['store', 'routes', 'wire', 'rules'].find((role) => user.endsWith(`-${role}`)) ?? user;
  return !NEVER[kind]?.test(used);
}

function roleOf(path: string): string {
  const name = basename(path, '.ts');
  return name === featureOf(path) ? 'public-api' : name;
}

function mayCross(from: string, to: string): boolean {
  const used = roleOf(to);
  return used === 'public-api' || used === 'wire' || (used === 'tables' && roleOf(from) === 'tables');
}

function betweenFeatures(): Import[] {
  return local.filter(({ from, to }) => {
    const [user, used] = [featureOf(from), featureOf(to)];
    return user !== undefined && used !== undefined && user !== used;
  });
}

/** Returns `lobbies` for src/features/lobbies/…, and undefined for a file outside of features. */
function featureOf(path: string): string | undefined {
  const [, layer, feature, ...rest] = path.split('/');
  return layer === 'features' && rest.length > 0 ? feature : undefined;
}

/** Returns a circle of features, or of files, that import each other; empty if there is none. */
function findCircle(arrows: Import[], nameOf: (path: string) => string = (path) => featureOf(path) ?? ''): string[] {
  const needs = Map.groupBy(arrows, ({ from }) => nameOf(from));
  const is_free = new Set<string>();
  const follow = (name: string, way: string[]): string[] => {
    if (way.includes(name)) return [...way, name];
    if (is_free.has(name)) return [];
    for (const { to } of needs.get(name) ?? []) {
      const circle = follow(nameOf(to), [...way, name]);
      if (circle.length > 0) return circle;
    }
    is_free.add(name);
    return [];
  };
  return [...needs.keys()].map((name) => follow(name, [])).find((circle) => circle.length > 0) ?? [];
}

function importsOf(path: string): Import[] {
  const { importedFiles } = ts.preProcessFile(read(path), true, true);
  return importedFiles.map(({ fileName }) => ({
    from: path,
    to: fileName.startsWith('.') ? relative(ROOT, join(ROOT, dirname(path), fileName)) : fileName,
    specifier: fileName,
  }));
}

/** Returns whether a file imports only types from another one. */
function isOfTypesOnly({ from, specifier }: Import): boolean {
  const statement = new RegExp(`import (type )?\\{([^}]*)\\} from '${specifier.replaceAll('.', '\\.')}'`).exec(
    read(from),
  );
  const names = statement?.[2]?.split(',').map((name) => name.trim()) ?? [];
  return statement?.[1] !== undefined || names.every((name) => name === '' || name.startsWith('type '));
}

/** Returns the names of the loops that a file starts, each given as a text or by the constant LOOP. */
function loopsOf(source: string): string[] {
  const constant = /^const LOOP = '([^']+)'/m.exec(source)?.[1] ?? 'LOOP without a name';
  return source
    .split(/\bstart(?:Loop|DeletingOld|Enforcing)\(/)
    .slice(1)
    .flatMap((call) => /\bname: (?:'([^']+)'|LOOP\b)/.exec(call)?.slice(1) ?? [])
    .map((name) => name ?? constant);
}

function listFiles(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync({ cwd: ROOT, dot: true })].sort();
}

function read(path: string): string {
  return ts.sys.readFile(join(ROOT, path)) ?? '';
}

/** Returns the links of a page that are relative. */
function linksOf(page: string): Link[] {
  const targets = read(page).matchAll(/\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)/g);
  return [...targets].map(([, path = '', anchor = '']) => ({
    page,
    to: path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path)),
    anchor,
  }));
}

function leadsSomewhere({ to, anchor }: Link): boolean {
  const path = join(ROOT, to);
  if (!ts.sys.fileExists(path)) return ts.sys.directoryExists(path) && anchor === '';
  return anchor === '' || !to.endsWith('.md') || anchorsOf(to).includes(anchor);
}

/** Returns what links may have after `#`: the headings of a page, spelled as GitHub does, and its own anchors. */
function anchorsOf(page: string): string[] {
  const text = read(page).replaceAll(/^```.*?^```$/gms, '');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
  return [...headings, ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)];
}

/** Returns the places at which a file spreads a literal into another one. */
function spreadLiteralsOf(path: string): string[] {
  const kind = path.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true, kind);
  const places: string[] = [];
  const visit = (node: ts.Node) => {
    const is_spread = ts.isSpreadAssignment(node) || ts.isJsxSpreadAttribute(node) || ts.isSpreadElement(node);
    if (is_spread && (ts.isObjectLiteralExpression(node.expression) || ts.isArrayLiteralExpression(node.expression))) {
      places.push(`${path}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return places;
}
