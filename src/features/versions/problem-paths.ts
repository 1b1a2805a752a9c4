/** Where a configuration is wrong, and how: `['config', 'matchmaker', 'captcha', 'pow', 'difficulty', 'too-high']`. */
export type ProblemPath = string[];

const LABEL_MAX = 128;

/** Returns a label as a part of a path, shortened because it is repeated for each problem below it. */
export function toPathPart(label: string): string {
  return `*${label.slice(0, LABEL_MAX)}*`;
}

/** Returns problems of a part as problems of the whole. */
export function below(part: string[], problems: ProblemPath[]): ProblemPath[] {
  return problems.map((path) => [...part, ...path]);
}
