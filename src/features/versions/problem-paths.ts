/** Where a configuration is wrong, and how: `['config', 'matchmaker', 'captcha', 'pow', 'difficulty', 'too-high']`. */
export type ProblemPath = string[];

/** Returns problems of a part as problems of the whole. */
export function below(part: string[], problems: ProblemPath[]): ProblemPath[] {
  return problems.map((path) => [...part, ...path]);
}
