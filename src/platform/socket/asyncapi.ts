import { type TSchema, Type } from '@sinclair/typebox';
import { CATALOGUE } from '../error-catalogue.ts';
import { ErrorBody } from '../http/answers.ts';
import { Authenticate, CLOSE, Ping, SUBPROTOCOL, Subscribe, Unsubscribe } from './frames.ts';

interface Message {
  name: string;
  summary: string;
  payload: TSchema;
  example: object;
}

const Id = Type.String({ description: "The client's own name for the subscription." });
const Key = Type.String({ description: 'The key under which the bodies of a subscription come.' });
const frame = (type: string, members: Record<string, TSchema> = {}) =>
  Type.Object({ type: Type.Literal(type), ...members });

const INDEX = '9f86d081.42';
const ERROR = {
  code: 'GAME_NOT_FOUND',
  message: CATALOGUE.GAME_NOT_FOUND.message,
  ray_id: '01a1fd6d-75cb-736c-a6d1-baa2f5588951',
  documentation: 'https://play.example.com/docs/errors#game-not-found',
};

const FROM_CLIENT: Message[] = [
  {
    name: 'authenticate',
    summary:
      'Sends the token: the first frame, if no token came with the request; or a newer token of the same caller.',
    payload: Authenticate,
    example: { type: 'authenticate', token: 'cloud.eyJ0eXAi…' },
  },
  {
    name: 'subscribe',
    summary: 'Watches what a GET of the path answers, from an index on.',
    payload: Subscribe,
    example: { type: 'subscribe', id: 'a', path: '/matchmaker/lobbies/list?include_state=true', watch_index: INDEX },
  },
  {
    name: 'unsubscribe',
    summary: 'Ends the subscription.',
    payload: Unsubscribe,
    example: { type: 'unsubscribe', id: 'a' },
  },
  { name: 'ping', summary: 'Checks that the service is there.', payload: Ping, example: { type: 'ping' } },
];

const FROM_SERVICE: Message[] = [
  {
    name: 'ready',
    summary: 'The token is valid.',
    payload: frame('ready', { subscriptions_max: Type.Integer() }),
    example: { type: 'ready', subscriptions_max: 256 },
  },
  {
    name: 'subscribed',
    summary: 'Bodies of the subscription come under this key.',
    payload: frame('subscribed', { id: Id, key: Key }),
    example: { type: 'subscribed', id: 'a', key: 'k7' },
  },
  {
    name: 'body',
    summary: 'The body that the GET would answer with; its shape is that of the path in /openapi.json.',
    payload: frame('body', {
      key: Key,
      body: Type.Object({ watch: Type.Object({ index: Type.String() }) }, { additionalProperties: true }),
    }),
    example: { type: 'body', key: 'k7', body: { lobbies: [], watch: { index: INDEX } } },
  },
  {
    name: 'unsubscribed',
    summary: 'The subscription has ended, because the client asked for it.',
    payload: frame('unsubscribed', { id: Id }),
    example: { type: 'unsubscribed', id: 'a' },
  },
  {
    name: 'error',
    summary:
      'With an id: the subscription was refused or has ended. Without: a frame was invalid or its id is in use, or the whole socket ends.',
    payload: frame('error', {
      id: Type.Optional(Id),
      error: ErrorBody,
      retry_after_ms: Type.Optional(Type.Integer({ description: 'Milliseconds.' })),
    }),
    example: { type: 'error', id: 'a', error: ERROR },
  },
  { name: 'pong', summary: 'Answers a ping.', payload: frame('pong'), example: { type: 'pong' } },
];

/** Describes the WebSocket channel as an AsyncAPI 3.0 document. docs/watch.md says what the frames mean. */
export function describeSocket(public_url: string, version: string): object {
  const { host, protocol } = new URL(public_url);
  const all = [...FROM_CLIENT, ...FROM_SERVICE];
  const referTo = ({ name }: Message) => ({ $ref: `#/channels/watch/messages/${name}` });
  const closes = Object.entries(CLOSE).map(([why, code]) => `${code} ${why}`);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Muster',
      version,
      description: `The subprotocol ${SUBPROTOCOL}. Close codes: ${closes.join(', ')}.`,
    },
    servers: { muster: { host, protocol: protocol === 'https:' ? 'wss' : 'ws' } },
    channels: {
      watch: {
        address: '/watch',
        messages: Object.fromEntries(
          all.map(({ name, summary, payload, example }) => [
            name,
            { name, summary, contentType: 'application/json', payload, examples: [{ payload: example }] },
          ]),
        ),
        bindings: { ws: { method: 'GET', headers: HEADERS, bindingVersion: '0.1.0' } },
      },
    },
    operations: {
      receiveFromClient: {
        action: 'receive',
        channel: { $ref: '#/channels/watch' },
        messages: FROM_CLIENT.map(referTo),
      },
      sendToClient: { action: 'send', channel: { $ref: '#/channels/watch' }, messages: FROM_SERVICE.map(referTo) },
    },
  };
}

const HEADERS = Type.Object({
  'Sec-WebSocket-Protocol': Type.String({ description: `${SUBPROTOCOL}, and for browsers bearer.TOKEN.` }),
  Authorization: Type.Optional(Type.String({ description: 'Bearer TOKEN, for all other clients.' })),
});
