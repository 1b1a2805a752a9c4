import { beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { selectFiles } from '../../src/hub/uploads/folder.ts';
import { pause } from '../../src/hub/uploads/parts.ts';
import { FILES_MAX } from '../../src/shared/left-out.ts';
import { deploy } from '../support/game.ts';
import { find, makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium, takePictures } from '../support/hub/hub-page.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const MIB = 1024 ** 2;
/** Longer than a test. */
const LEASE_MS = 3_600_000;
/** A server as a folder: a script that reads another file of the folder, and calls ready. */
const SERVER = `#!/bin/sh
echo "says $(cat data/words.txt)"
curl -s -X POST -H "authorization: Bearer $SERVICE_TOKEN" "$SERVICE_API_ENDPOINT/matchmaker/lobbies/ready"
exec sleep 600
`;

/** A server as a file. */
const SCRIPT = { name: 'server.ts', mimeType: 'text/plain', buffer: Buffer.from('// nothing') };

describe('hub: the files of a folder', () => {
  const filesIn = (folder: string, count: number) =>
    Array.from({ length: count }, (_, number) => ({ path: `${folder}/${number}`, file: new File([], `${number}`) }));
  const server = { path: 'server.js', file: new File([''], 'server.js') };
  const ignores = { path: '.musterignore', file: new File(['node_modules/'], '.musterignore') };

  test('are limited without those that are left out', async () => {
    const ignored = filesIn('node_modules', FILES_MAX + 1);
    const selected = await selectFiles({ is: 'folder', name: 'tanks', files: [...ignored, ignores, server] });
    expect(selected.files).toEqual([server]);
  });

  test('are refused if they are more than the limit', async () => {
    const files = filesIn('data', FILES_MAX);
    expect((await selectFiles({ is: 'folder', name: 'tanks', files })).files).toHaveLength(FILES_MAX);
    await expect(selectFiles({ is: 'folder', name: 'tanks', files: [...files, server] })).rejects.toThrow(
      `The folder tanks has more than ${FILES_MAX} files to upload: leave some out by its .musterignore`,
    );
  });

  test('those of a folder that is the data directory of a service are refused', async () => {
    const files = ['index.html', 'administrator-token'].map((path) => ({ path, file: new File([], path) }));
    await expect(selectFiles({ is: 'folder', name: 'data', files })).rejects.toThrow(
      'data is the data directory of a service',
    );
  });
});

test('hub: a pause of an upload that was stopped already throws at once', async () => {
  await expect(pause(60_000, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped');
});

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: uploads', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    game = await makeControlledGame(muster);
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod/versions`;
  });
  const builds = async () => {
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}/builds`, { token: game.cloud_token });
    return answer.builds as { build_id: string; display_name: string; complete: boolean; content_length: number }[];
  };

  /** Writes a folder with a server, and what is never uploaded. */
  async function makeFolder() {
    const above = await mkdtemp(join(tmpdir(), 'muster-folder-'));
    const folder = join(above, 'tanks');
    await mkdir(join(folder, 'data'), { recursive: true });
    await mkdir(join(folder, '.git'));
    await mkdir(join(folder, 'state'));
    await writeFile(join(folder, 'server.sh'), SERVER);
    // A folder that comes from Windows has no executable files.
    await chmod(join(folder, 'server.sh'), 0o644);
    await writeFile(join(folder, 'data/words.txt'), 'hello from the folder');
    await writeFile(join(folder, '.git/HEAD'), 'x');
    await writeFile(join(folder, '.env'), 'SECRET=1');
    await writeFile(join(folder, 'state/administrator-token'), 'SECRET');
    await writeFile(join(folder, 'state/one.key'), 'SECRET');
    return { folder, [Symbol.asyncDispose]: () => rm(above, { recursive: true }) };
  }

  test('a folder is packed in the browser, uploaded, and becomes a version whose servers run', async () => {
    await using made = await makeFolder();
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByText('Drop the folder of your game server here').waitFor();
    await page.getByLabel('Folder of a game server').setInputFiles(made.folder);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('2 files of tanks').waitFor();
    await dialog.getByText('Left out, because they usually hold secrets: .env').waitFor();
    expect(await dialog.getByLabel('Command').inputValue()).toBe('./server.sh');
    await takePictures(opened, 'upload');
    await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('is uploaded.').waitFor();
    await takePictures(opened, 'uploaded');
    await page.getByRole('button', { name: 'New version with it' }).click();
    await page.waitForURL(/versions\/[0-9a-f-]{36}$/);
    await page.getByRole('button', { name: 'Deploy' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click();
    await page.getByText('Running lobbies go on.').waitFor();
    const found = await find(muster, game);
    expect(outcomeOf(found)).toBe('200');
    const logs = `/cloud/games/${game.game_id}/matchmaker/lobbies/${found.body.lobby.lobby_id}/logs?stream=std_out`;
    const { lines } = await waitFor(async () => {
      const log = await muster.api.ok('GET', logs, { token: game.cloud_token });
      return log.lines.length > 0 && log;
    }, 'the first line');
    expect(atob(lines[0])).toBe('says hello from the folder');

    // The same folder once more is not sent again.
    await page.goto(`${muster.config.public_url}${path}`);
    await page.getByLabel('Folder of a game server').setInputFiles(made.folder);
    await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('The service has this content already').waitFor();
    expect((await builds()).filter(({ display_name }) => display_name.startsWith('tanks'))).toHaveLength(1);
    expect(problems).toEqual([]);
  });

  test('a folder that is dropped may have any number of files that are left out', async () => {
    await using made = await makeFolder();
    const ignored = join(made.folder, 'node_modules');
    await mkdir(ignored);
    for (let number = 0; number <= FILES_MAX; number += 1) writeFileSync(join(ignored, `${number}.js`), '');
    await writeFile(join(made.folder, '.musterignore'), 'node_modules/\n');
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, context, problems } = opened;
    const area = page.locator('.drop').filter({ hasText: 'Drop the folder of your game server here' });
    const browser = await context.newCDPSession(page);
    const drag = async (type: 'dragEnter' | 'dragOver' | 'drop') => {
      const { x = 0, y = 0 } = (await area.boundingBox()) ?? {};
      const data = { items: [], files: [made.folder], dragOperationsMask: 1 };
      await browser.send('Input.dispatchDragEvent', { type, x: x + 5, y: y + 5, data });
    };
    // What is above the area may still be loading, and moves it.
    await waitFor(async () => {
      await drag('dragEnter');
      await drag('dragOver');
      return (await area.getAttribute('class'))?.includes('is-over');
    }, 'the page to show where the folder would be dropped');
    await drag('drop');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('2 files of tanks').waitFor();
    await dialog.getByText('Left out, because they usually hold secrets: .env').waitFor();
    expect(problems).toEqual([]);
  });

  test('a folder with muster.yaml is uploaded without reading it, and the page names the command that does', async () => {
    await using made = await makeFolder();
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    const dialog = page.getByRole('dialog');
    const note = dialog.getByText('This page does not read muster.yaml');
    await page.getByLabel('Folder of a game server').setInputFiles(made.folder);
    await dialog.getByText('2 files of tanks').waitFor();
    expect(await note.count()).toBe(0);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await writeFile(join(made.folder, 'muster.yaml'), 'game: tanks\nbuild: { path: ., command: [./server.sh] }\n');
    await page.getByLabel('Folder of a game server').setInputFiles(made.folder);
    await note.waitFor();
    await dialog.getByText('muster deploy prod --game').waitFor();
    await takePictures(opened, 'upload-project');
    expect(problems).toEqual([]);
  });

  test('an upload that was interrupted sends only what is missing', async () => {
    const above = await mkdtemp(join(tmpdir(), 'muster-archive-'));
    const file = join(above, 'server.tar');
    await mkdir(join(above, 'content'));
    await writeFile(join(above, 'content/server.sh'), SERVER, { mode: 0o755 });
    await writeFile(join(above, 'content/noise'), crypto.getRandomValues(Buffer.alloc(65_536)));
    await Bun.write(join(above, 'content/zeros'), new Uint8Array(20 * MIB));
    await Bun.$`tar -cf ${file} -C ${join(above, 'content')} server.sh noise zeros`.quiet();
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    const sent: string[] = [];
    const first_stored = Promise.withResolvers<void>();
    page.on('requestfinished', (request) => {
      if (request.method() !== 'PUT') return;
      sent.push(request.url());
      first_stored.resolve();
    });
    // The connection breaks for all parts but the first, once that is stored.
    let is_broken = true;
    let passed = 0;
    await page.route('**/uploads/*', async (route) => {
      if (route.request().method() !== 'PUT') return await route.continue();
      passed += 1;
      if (!is_broken || passed === 1) return await route.continue();
      await first_stored.promise;
      return await route.fulfill({ status: 400, body: '{"message":"broken"}' });
    });
    const upload = async (name: string) => {
      await page.getByLabel('File of a game server').setInputFiles(file);
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Name').fill(name);
      await dialog.getByLabel('Command').fill('./server.sh');
      await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
    };
    await upload('begun');
    await page.getByText('was not uploaded: broken').waitFor();
    const unfinished = (await builds()).find(({ complete }) => !complete);
    expect(unfinished).toBeDefined();
    is_broken = false;
    sent.length = 0;
    // In another namespace, which the upload was not begun for.
    await page.goto(new URL(path.replace('/prod/', '/staging/'), page.url()).href);
    await upload('renamed');
    // It keeps the name that it was begun with.
    await page.getByText('begun is uploaded.').waitFor();
    expect(sent.length).toBeLessThan(3);
    const finished = (await builds()).find(({ build_id }) => build_id === unfinished?.build_id);
    expect(finished?.complete).toBe(true);
    await rm(above, { recursive: true });
  });

  test('an upload whose check goes on after its request, or for another one, is completed after that', async () => {
    const above = await mkdtemp(join(tmpdir(), 'muster-busy-'));
    const file = join(above, 'busy.js');
    await writeFile(file, 'setInterval(() => {}, 1_000);');
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    const answers: number[] = [];
    page.on('response', (response) => {
      if (response.url().endsWith('/complete')) answers.push(response.status());
    });
    // The time of the request is over, then a proxy gives up, then another request has the lease of the upload.
    let attempts = 0;
    await page.route('**/builds/*/complete', async (route) => {
      attempts += 1;
      if (attempts === 1) return await route.fulfill({ status: 503, json: { code: 'API_REQUEST_TIMEOUT' } });
      if (attempts === 2) return await route.fulfill({ status: 504, body: 'the page of a proxy' });
      const until = attempts === 3 ? new Date(Date.now() + LEASE_MS) : null;
      const [, build_id = ''] = /builds\/([^/]+)\/complete$/.exec(route.request().url()) ?? [];
      await muster.database.queries.execute(
        sql`update uploads set completing_until = ${until?.toISOString() ?? null}
          where upload_id = (select upload_id from builds where build_id = ${build_id})`,
      );
      await route.continue();
    });
    await page.getByLabel('File of a game server').setInputFiles(file);
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('is uploaded.').waitFor();
    const build = (await builds()).find(({ display_name }) => display_name.startsWith('busy'));
    expect([answers, build?.complete]).toEqual([[503, 504, 503, 200], true]);
    await rm(above, { recursive: true });
  });

  test('a build makes no version if a game mode of the live one has a build of its own', async () => {
    const own = await makeControlledGame(muster);
    const docker = { image_id: own.build_id };
    await deploy(muster.api, own, { game_modes: { default: {}, ranked: { docker } }, docker });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/versions`, own.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('File of a game server').setInputFiles(SCRIPT);
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('The live version does not use one build for all game modes.').waitFor();
    expect(await page.getByRole('button', { name: 'New version with it' }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('a build makes no version if the live one has secrets, which the page cannot copy', async () => {
    const own = await makeControlledGame(muster);
    const verification_config = { url: 'https://example.com/verify', secret: `whsec_${btoa('x'.repeat(32))}` };
    const find_action = { enabled: true, verification_config };
    await deploy(muster.api, own, { ...own.matchmaker, game_modes: { default: { actions: { find: find_action } } } });
    const { game: its } = await muster.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
    await using opened = await chromium.open(`/hub/${its.name_id}/prod/versions`, own.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('File of a game server').setInputFiles(SCRIPT);
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('The live version has secrets, which this page cannot copy.').waitFor();
    expect(await page.getByRole('button', { name: 'New version with it' }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('a program whose name has a blank is not proposed, and the form says what to do', async () => {
    const above = await mkdtemp(join(tmpdir(), 'muster-blank-'));
    await writeFile(join(above, 'My Game.sh'), SERVER);
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.getByLabel('Folder of a game server').setInputFiles(above);
    const command = page.getByRole('dialog').getByLabel('Command');
    expect(await command.inputValue()).toBe('');
    await command.fill('./My Game.sh');
    expect(await command.evaluate((input: HTMLInputElement) => input.validationMessage)).toBe(
      'A program whose name has a blank cannot be named here: rename it, or use "muster deploy".',
    );
    expect(problems).toEqual([]);
    await rm(above, { recursive: true });
  });

  test('a script of an upgraded service that is missing is reported with what to do', async () => {
    await using made = await makeFolder();
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByText('Drop the folder of your game server here').waitFor();
    await page.context().route('**/hub-files/*.js', (route) => route.fulfill({ status: 404 }));
    await page.getByLabel('Folder of a game server').setInputFiles(made.folder);
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('A script of this page could not be loaded. Reload the page').waitFor();
  });

  test('an upload ends with the session of its bearer', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    await page.route('**/builds/prepare', (route) => route.abort());
    await page.getByLabel('File of a game server').setInputFiles(SCRIPT);
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByText('was not uploaded:').waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    // The page is not loaded anew: only what follows the # of its address changes.
    await page.getByText('Or paste a token of yours').waitFor();
    await page.goto(await chromium.linkTo(path));
    await page.getByText('Drop the folder of your game server here').waitFor();
    expect(await page.getByText('was not uploaded:').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('a folder without a game server is refused with the reason', async () => {
    const above = await mkdtemp(join(tmpdir(), 'muster-picture-'));
    await writeFile(join(above, 'picture.png'), 'x');
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByLabel('File of a game server').setInputFiles(join(above, 'picture.png'));
    await page.getByText('picture.png is neither a folder').waitFor();
    await rm(above, { recursive: true });
  });

  test('a name or command that the service would refuse is corrected in the form, and a refused upload can be changed', async () => {
    await using made = await makeFolder();
    await using opened = await chromium.open(path, game.cloud_token);
    const { page, problems } = opened;
    const dialog = page.getByRole('dialog');
    const [name, command] = [dialog.getByLabel('Name'), dialog.getByLabel('Command')];
    const problemOf = (field: typeof name) => field.evaluate((input: HTMLInputElement) => input.validationMessage);
    const upload = dialog.getByRole('button', { name: 'Upload', exact: true });
    await page.getByLabel('Folder of a game server').setInputFiles(made.folder);
    await name.fill('ü'.repeat(65));
    expect(await problemOf(name)).toBe('The name must have at most 128 bytes. It has 130.');
    await name.fill('  ');
    expect(await problemOf(name)).toBe('The name must not be blank.');
    await name.fill('corrected');
    await command.fill('  ');
    expect(await problemOf(command)).toBe('The command must name a program.');
    await command.fill('./data/../servr.sh');
    expect(await problemOf(command)).toBe('The folder has no file ./data/../servr.sh that is uploaded.');
    await upload.click();
    expect(await dialog.isVisible()).toBe(true);
    await command.fill('./data/../server.sh --fast');
    expect(await problemOf(command)).toBe('');
    await page.route('**/builds/prepare', (route) => route.fulfill({ status: 400, json: { message: 'refused' } }));
    await upload.click();
    await page.getByText('corrected was not uploaded: refused').waitFor();
    await page.unroute('**/builds/prepare');
    await page.getByRole('button', { name: 'Change' }).click();
    expect(await command.inputValue()).toBe('./data/../server.sh --fast');
    await name.fill('changed');
    await command.fill('./server.sh --fast');
    await upload.click();
    await page.getByText('changed is uploaded.').waitFor();
    expect(problems).toEqual([]);
  });

  test('a long name of a file is cut, and an empty file is refused', async () => {
    const above = await mkdtemp(join(tmpdir(), 'muster-names-'));
    const file = join(above, `${'語'.repeat(60)}.js`);
    await writeFile(file, '');
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByLabel('File of a game server').setInputFiles(file);
    await page.getByText('.js is empty: choose another file.').waitFor();
    await writeFile(file, '// nothing');
    await page.getByLabel('File of a game server').setInputFiles(file);
    const name = await page.getByRole('dialog').getByLabel('Name').inputValue();
    expect(name).toMatch(/^語{37} \d{4}-\d\d-\d\d \d\d:\d\d$/);
    expect(Buffer.byteLength(name)).toBe(128);
    await rm(above, { recursive: true });
  });

  test('a file that is dropped beside the place for it, and a tab that is closed meanwhile, lose nothing', async () => {
    await using opened = await chromium.open(path, game.cloud_token);
    const { page } = opened;
    await page.getByText('Drop the folder of your game server here').waitFor();
    const isIgnored = (type: string) =>
      page.evaluate((name) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(['x'], 'server.js'));
        const event = new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer });
        document.querySelector('h1')?.dispatchEvent(event);
        return event.defaultPrevented;
      }, type);
    expect([await isIgnored('dragover'), await isIgnored('drop')]).toEqual([true, true]);
    const asksBeforeClosing = () =>
      page.evaluate(() => !dispatchEvent(new Event('beforeunload', { cancelable: true })));
    expect(await asksBeforeClosing()).toBe(false);
    const released = Promise.withResolvers<void>();
    await page.route('**/builds/prepare', async (route) => {
      await released.promise;
      await route.abort();
    });
    await page.getByLabel('File of a game server').setInputFiles(SCRIPT);
    await page.getByRole('dialog').getByRole('button', { name: 'Upload', exact: true }).click();
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    expect(await asksBeforeClosing()).toBe(true);
    released.resolve();
    await page.getByText('was not uploaded:').waitFor();
    expect(await asksBeforeClosing()).toBe(false);
  });
});
