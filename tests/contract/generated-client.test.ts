import { expect, test } from 'bun:test';
import openapiTypescript, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import document from '../../docs/openapi.json' with { type: 'json' };

const FILE = '/client.ts';

/** Uses operations and shapes by name; each line marked as an error must be one. */
const PROGRAM = `
type Schemas = components['schemas'];
type Server = Schemas['Server'];
type Found = operations['findLobby']['responses'][200]['content']['application/json'];
type Refused = components['responses']['TooManyRequests']['content']['application/json'];
const wanted: operations['findLobby']['requestBody']['content']['application/json'] = { game_modes: ['room'] };
export const lobbyOf = (found: Found): string => found.lobby.lobby_id;
export const idOf = (server: Server): string => server.id;
export const codeOf = (refused: Refused): string => refused.code;
export const nouns = (
  lobby: Schemas['Lobby'], game: Schemas['Game'], namespace: Schemas['Namespace'], version: Schemas['Version'],
  config: Schemas['VersionConfig'], region: Schemas['Region'], receipt: Schemas['Receipt'], captcha: Schemas['Captcha'],
) => [
  lobby.lobby_id, game.name_id, namespace.config.cdn.auth_type, version.config.matchmaker, config.matchmaker?.game_modes,
  region.region_id, receipt.outcome.code, captcha.hcaptcha?.client_response,
];
export const protocolsOf = ({ network }: Server): Schemas['Protocol'][] =>
  Object.values(network.ports).map(({ protocol }) => protocol);
export const udp: Schemas['Protocol'] = 'udp';
// @ts-expect-error: no protocol.
export const carrierPigeon: Schemas['Protocol'] = 'carrier-pigeon';
// @ts-expect-error: a list.
const wrong: operations['findLobby']['requestBody']['content']['application/json'] = { game_modes: 'room' };
// @ts-expect-error: no member of a server.
export const noneOf = (server: Server) => server.nothing;
export { wanted, wrong };
`;

test('a TypeScript client generated from the API document compiles', async () => {
  const generated = astToString(await openapiTypescript(JSON.stringify(document)));
  const source = `${generated}\n${PROGRAM}`;
  const options = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, types: [] };
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (path, version, ...rest) =>
    path === FILE ? ts.createSourceFile(path, source, version) : getSourceFile.call(host, path, version, ...rest);
  const program = ts.createProgram([FILE], options, host);
  const problems = ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  expect(problems).toEqual([]);
});
