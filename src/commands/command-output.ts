import { terminal } from '../terminal/terminal.ts';

/** Where a command of this machine writes what it did: a sentence or, with `--json`, one object. */
export interface CommandOutput {
  is_json: boolean;
  /** Writes what was done. */
  show(answer: object, sentence: string): void;
  /** Writes why nothing was done, to stderr. Returns the exit code. */
  fail(message: string, exit_code: number): number;
}

export function createOutput(is_json: boolean): CommandOutput {
  return {
    is_json,
    show(answer, sentence) {
      if (is_json) terminal.json(answer);
      else terminal.line(sentence);
    },
    fail(message, exit_code) {
      if (is_json) terminal.sayFailure({ exit_code, message });
      else terminal.say(message);
      return exit_code;
    },
  };
}
