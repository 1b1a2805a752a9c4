/** A path to watch, and the token of the watcher. */
export interface Target {
  path: string;
  token: string;
  /** For a log: returns the lines of a body, which must be "0", "1", "2" and so on. */
  linesOf?: (text: string) => string[];
}

const INDEX = /"watch":\{"index":"([0-9a-f]+)\.(\d+)"\}\}$/;

/** All bodies that one watcher received, in order, and their faults. */
export class WatchHistory {
  readonly faults: string[] = [];
  readonly target: Target;
  /** The last body as it came. */
  text = '';
  /** The index from which to continue. */
  index: string | undefined;
  bodies = 0;
  /** How often the watcher connected to a process. */
  visits = 0;
  lines = 0;
  #number = -1;
  /** The body of each number. */
  readonly #seen = new Map<number, string>();

  constructor(target: Target) {
    this.target = target;
  }

  take(text: string): void {
    this.bodies += 1;
    this.text = text;
    const [, epoch, digits] = INDEX.exec(text) ?? [];
    if (digits === undefined) {
      this.note(`a body without an index: ${text.slice(0, 200)}`);
      return;
    }
    const number = Number(digits);
    if (number < this.#number) this.note(`after index ${this.#number} came ${number}`);
    this.#number = number;
    this.index = `${epoch}.${digits}`;
    if (this.target.linesOf) this.#takeLines(this.target.linesOf(text), number);
    else this.#takeView(text, number);
  }

  note(fault: string): void {
    this.faults.push(`${this.target.path}: ${fault}`);
  }

  #takeLines(lines: string[], number: number): void {
    for (const line of lines) {
      if (line !== String(this.lines)) this.note(`instead of line ${this.lines} came ${line}`);
      this.lines = Number(line) + 1;
    }
    if (number !== this.lines) this.note(`the index after line ${this.lines - 1} is ${number}`);
  }

  #takeView(text: string, number: number): void {
    const before = this.#seen.get(number);
    if (before !== undefined && before !== text) this.note(`at index ${number}\n  ${before}\nand then\n  ${text}`);
    this.#seen.set(number, text);
  }
}
