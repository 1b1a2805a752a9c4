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
  /** The text of the last body. */
  text = '';
  /** The index from which to continue. */
  index: string | undefined;
  bodies = 0;
  /** How often the watcher connected to a process. */
  connect_count = 0;
  lines = 0;
  #number = -1;
  /** The body of each number. */
  readonly #seen = new Map<number, string>();

  constructor(target: Target) {
    this.target = target;
  }

  add(text: string): void {
    this.bodies += 1;
    this.text = text;
    const [, epoch, digits] = INDEX.exec(text) ?? [];
    if (digits === undefined) {
      this.addFault(`a body without an index: ${text.slice(0, 200)}`);
      return;
    }
    const number = Number(digits);
    if (number < this.#number) this.addFault(`after index ${this.#number} came ${number}`);
    this.#number = number;
    this.index = `${epoch}.${digits}`;
    if (this.target.linesOf) this.#addLines(this.target.linesOf(text), number);
    else this.#addView(text, number);
  }

  addFault(fault: string): void {
    this.faults.push(`${this.target.path}: ${fault}`);
  }

  #addLines(lines: string[], number: number): void {
    for (const line of lines) {
      if (line !== String(this.lines)) this.addFault(`instead of line ${this.lines} came ${line}`);
      this.lines = Number(line) + 1;
    }
    if (number !== this.lines) this.addFault(`the index after line ${this.lines - 1} is ${number}`);
  }

  #addView(text: string, number: number): void {
    const before = this.#seen.get(number);
    if (before !== undefined && before !== text) this.addFault(`at index ${number}\n  ${before}\nand then\n  ${text}`);
    this.#seen.set(number, text);
  }
}
