import { expect } from 'bun:test';
import { type ContentProblem, describeProblem } from '../../src/features/names.ts';
import { VERSION_ADVICE } from '../../src/features/versions/problem-advice.ts';

/** Expects the message of a refused version to say what to do about each problem. */
export function expectAdvice(problems: ContentProblem[]): void {
  for (const problem of problems) expect(describeProblem(problem, VERSION_ADVICE)).toEndWith(')');
}
