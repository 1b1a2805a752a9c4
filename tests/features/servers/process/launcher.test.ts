import { expect, test } from 'bun:test';

test('launcher: it loads no module of Node, which would take a third of the time until a server starts', async () => {
  const { outputs } = await Bun.build({ entrypoints: ['src/launch.ts'], target: 'bun' });
  const source = (await outputs[0]?.text()) ?? '';
  const loaded = new Bun.Transpiler({ loader: 'js' }).scanImports(source).map(({ path }) => path);
  expect(new Set(loaded)).toEqual(new Set(['bun:ffi']));
});
