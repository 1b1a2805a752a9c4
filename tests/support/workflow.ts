import { join } from 'node:path';
import { parse } from 'yaml';

interface Step {
  name?: string;
  uses?: string;
  if?: string;
  env?: Record<string, string>;
  run?: string;
}

interface Workflow {
  env?: Record<string, string>;
  jobs: Record<string, { steps: Step[] }>;
}

interface RunOptions {
  /** The workspace, as it is checked out. */
  cwd: string;
  /** A directory for files of the run. */
  temp: string;
  /** The values of expressions such as `vars.NAME` and `github.ref`. */
  values: Record<string, string>;
  /** Variables of the runner's environment. */
  environment: Record<string, string>;
}

/** A step that ran. */
interface Outcome {
  name: string;
  exit_code: number;
  output: string;
}

/**
 * Runs the commands of a workflow of GitHub Actions as a runner does: each step in a bash of its own that ends at the first
 * failure, with what earlier steps added to the path. Actions (`uses`) do nothing, because the caller has prepared
 * the workspace. Stops after a step that fails.
 */
export async function runWorkflow(file: string, { cwd, temp, values, environment }: RunOptions): Promise<Outcome[]> {
  const { jobs, env: of_all = {} }: Workflow = parse(await Bun.file(file).text());
  const path_file = join(temp, 'path');
  const script = join(temp, 'step.sh');
  await Bun.write(path_file, '');
  const outcomes: Outcome[] = [];
  for (const { name = '', if: condition, env = {}, run } of Object.values(jobs).flatMap(({ steps }) => steps)) {
    if (run === undefined || !isWanted(condition, values)) continue;
    await Bun.write(script, fill(run, values));
    const own = Object.fromEntries(
      Object.entries({ ...of_all, ...env }).map(([key, value]) => [key, fill(value, values)]),
    );
    const added = (await Bun.file(path_file).text()).split('\n').filter(Boolean).toReversed();
    const child = Bun.spawn(['bash', '--noprofile', '--norc', '-eo', 'pipefail', script], {
      cwd,
      env: {
        ...environment,
        ...own,
        CI: 'true',
        RUNNER_TEMP: temp,
        GITHUB_PATH: path_file,
        GITHUB_REF: values['github.ref'],
        GITHUB_SHA: values['github.sha'],
        PATH: [...added, environment.PATH].join(':'),
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const texts = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    outcomes.push({ name, exit_code: await child.exited, output: texts.join('') });
    if (child.exitCode !== 0) break;
  }
  return outcomes;
}

/** Evaluates a condition: a value is equal to a text. */
function isWanted(condition: string | undefined, values: Record<string, string>): boolean {
  if (condition === undefined) return true;
  const [, name = '', text] = /^([\w.]+) == '([^']*)'$/.exec(condition) ?? [];
  if (text === undefined) throw new Error(`the condition "${condition}" cannot be evaluated here`);
  return values[name] === text;
}

function fill(text: string, values: Record<string, string>): string {
  return text.replace(/\$\{\{ *([\w.]+) *\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${name} has no value`);
    return value;
  });
}
