/** A command that docs/cli.md shows, with what it writes. */
export interface Flow {
  command: string;
  output: string;
}

/** Returns the commands of a text in order. */
export function parseFlows(text: string): Flow[] {
  return text
    .split(/^\$ muster /m)
    .slice(1)
    .map((flow) => {
      const [command = '', ...output] = flow.trimEnd().split('\n');
      return { command, output: output.join('\n') };
    });
}

/** Returns what happens while a command goes on, each with what the command writes after it. The first is its start. */
export function parseEvents({ output }: Flow): { event: string; shown: string }[] {
  return `# start\n${output}`
    .split(/^# /m)
    .slice(1)
    .map((part) => {
      const [event = '', ...shown] = part.split('\n');
      return { event, shown: shown.join('\n') };
    });
}

/** Returns the arguments as a shell reads them. */
export function parseArguments(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
}

/** Replaces what differs from run to run: ids, tokens, numbers, times and the width of columns. */
export function maskChanging(text: string): string {
  return text
    .trim()
    .replaceAll('\r', '')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
    .replace(/\b[0-9a-f]{12}\b/g, 'id')
    .replace(/\b[0-9a-f]{8}\b/g, 'id')
    .replace(/\bpub_\S+/g, 'pub_TOKEN')
    .replace(/the code \S+,/, 'the code CODE,')
    .replace(/^(\d\d:\d\d:\d\d\.\d{3}) [0-9a-f]{4} /gm, '$1 id ')
    .replace(/[\d.:T-]*\d+/g, '0')
    .replace(/\b0[smhd]\b/g, '0s')
    .replace(/ {2,}/g, '  ');
}
