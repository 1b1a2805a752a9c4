import { expect, test } from 'bun:test';
import { makeGame } from '../../support/game.ts';
import { openTestService } from '../../support/service.ts';

test('tags: a value that is not a text is refused, whatever its name', async () => {
  await using opened = await openTestService();
  const { public_token } = await makeGame(opened.api, opened.administrator_token);
  for (const name of ['a', 'a\nb', '\u2028', '']) {
    for (const value of [null, 1, {}, []]) {
      const body = { game_modes: ['default'], tags: { [name]: value } };
      const answer = await opened.api.post('/matchmaker/lobbies/find', public_token, body);
      expect({ status: answer.status, code: answer.body.code }).toEqual({ status: 400, code: 'API_BAD_BODY' });
    }
  }
});
