const SOURCE = `
const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
console.log(server.port);
`;

/**
 * A target whose process is stopped: the system still queues connections until the queue is full, but none is accepted.
 */
export async function openStoppedTarget(): Promise<AsyncDisposable & { port: number }> {
  const child = Bun.spawn([process.execPath, '-e', SOURCE], { stdout: 'pipe' });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  child.kill('SIGSTOP');
  return {
    port: Number(new TextDecoder().decode(value)),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
