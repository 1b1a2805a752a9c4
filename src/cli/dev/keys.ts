const CTRL_C = '\u0003';

/** In a terminal, calls the action of each pressed key until it is disposed of. ctrl-C counts as q. */
export function listenForKeys(actions: Record<string, () => void>): Disposable {
  const { stdin } = process;
  if (!stdin.isTTY) return { [Symbol.dispose]() {} };
  const onData = (bytes: Buffer) => {
    for (const key of bytes.toString().replaceAll(CTRL_C, 'q')) actions[key]?.();
  };
  stdin.setRawMode(true);
  stdin.on('data', onData);
  // `confirmUse` may have paused it.
  stdin.resume();
  return {
    [Symbol.dispose]() {
      stdin.off('data', onData);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}
