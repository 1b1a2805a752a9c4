import { makeGame } from '../../tests/support/game.ts';
import { serversOf } from '../../tests/support/servers.ts';
import { calm, type Fault, holds } from './fault.ts';

const SECONDS = 15;

export const yes: Fault = {
  name: 'yes',
  title: 'a game server prints short lines endlessly',
  async run(context) {
    const subject = await context.start();
    await context.phase(subject, 'calm', calm);
    const game = await makeGame(subject.program.api, subject.program.administrator_token);
    const servers = serversOf(subject.program, game);
    const server_id = await servers.run('exec yes\n');
    await servers.waitForStart(server_id);
    await context.phase(subject, 'while it prints', () => Bun.sleep((context.is_quick ? 5 : SECONDS) * 1_000));
    // Otherwise nothing was printed, and the phase shows nothing.
    context.expect(holds('its lines are in its log', (await servers.linesOf(server_id)).includes('y')));
    await servers.destroy(server_id);
  },
};
