import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, extname, relative, resolve } from 'node:path';
import { EXIT, Failure } from '../../terminal/failure.ts';

/** A script as it is uploaded. */
export interface Script {
  file_name: string;
  content: Uint8Array;
  /** The files that it was made of, absolute; itself first. */
  sources: string[];
}

/** Reads a script. One that imports other files or packages becomes a bundle with them; any other stays as it is. */
export async function readScript(path: string): Promise<Script> {
  const content = readFileSync(path);
  if (!hasImports(path, content.toString())) return { file_name: basename(path), content, sources: [path] };
  const built = await Bun.build({ entrypoints: [path], target: 'bun', metafile: true, throw: false });
  const [bundle, ...others] = built.outputs;
  if (!built.success || !bundle) throw new Failure(built.logs.map(describe(path)).join('\n'), EXIT.wrong_use);
  const inputs = Object.keys(built.metafile?.inputs ?? {}).map((input) => resolve(input));
  if (others.length > 0) {
    const names = others.map(({ path: output }) => basename(output)).join(', ');
    const advice = 'let build.path be a directory, and build.command its program';
    throw new Failure(`${relative('.', path)} imports files that are not code (${names}): ${advice}.`, EXIT.wrong_use);
  }
  return {
    file_name: `${basename(path, extname(path))}.js`,
    content: new Uint8Array(await bundle.arrayBuffer()),
    sources: [path, ...inputs.filter((input) => input !== path)],
  };
}

/** Returns the files that a script is made of; only itself if it cannot be bundled. */
export async function listSources(path: string): Promise<string[]> {
  try {
    return (await readScript(path)).sources;
  } catch {
    // The deploy says what is wrong with it.
    return [path];
  }
}

/** Returns whether a script imports more than what the runtime has. */
function hasImports(path: string, content: string): boolean {
  const loader = /\.[cm]?ts$/.test(path) ? 'ts' : 'tsx';
  try {
    const imports = new Bun.Transpiler({ loader }).scanImports(content);
    return imports.some(({ path: name }) => !isBuiltin(name) && !/^bun(:|$)/.test(name));
  } catch {
    // The log of its server says what is wrong.
    return false;
  }
}

/** Returns a function that describes an error with its file and line. */
function describe(path: string) {
  return ({ message, position }: BuildMessage | ResolveMessage): string => {
    const file = position?.file ? relative('.', position.file) : relative('.', path);
    return `${file}${position ? `:${position.line}` : ''}: ${message}`;
  };
}
