import { type Static, Type } from '@sinclair/typebox';
import { oneOf } from '../../platform/http/shapes.ts';
import { OutboundExchange } from '../outbound-exchange.ts';

const CLIENT_RESPONSE_LENGTH_MAX = 8_192;
const ClientResponse = Type.Object(
  {
    client_response: Type.String({
      maxLength: CLIENT_RESPONSE_LENGTH_MAX,
      description: 'The response that the client got from the provider for solving the captcha.',
    }),
  },
  { title: 'CaptchaClientResponse' },
);

/** The providers, in order of preference. */
export const PROVIDERS = ['hcaptcha', 'turnstile', 'pow'] as const;

/** A solved captcha, as a request for seats carries it. */
export const Captcha = Type.Object(
  {
    hcaptcha: Type.Optional(ClientResponse),
    turnstile: Type.Optional(ClientResponse),
    pow: Type.Optional(ClientResponse),
  },
  { title: 'Captcha' },
);
export type Captcha = Static<typeof Captcha>;

/** The result of the captcha check, as receipts show it. */
export const CaptchaDecision = Type.Object(
  {
    decision: Type.Union(
      [
        Type.Literal('solved', { description: 'The request had a captcha, and its provider accepted it.' }),
        Type.Literal('solved_before', { description: 'A captcha was solved from this address recently.' }),
        Type.Literal('let_through', {
          description: 'The provider was unavailable, and the service is set to let requests pass then.',
        }),
        Type.Literal('required', { description: 'The request had no captcha and needed one.' }),
        Type.Literal('refused', { description: 'The provider or the service rejected the captcha.' }),
        Type.Literal('unavailable', {
          description: 'The captcha could not be checked: its provider gave no verdict, or the version has no keys.',
        }),
      ],
      { title: 'CaptchaOutcome', description: 'Why the request passed the captcha check, or did not.' },
    ),
    provider: Type.Optional(oneOf('CaptchaProvider', PROVIDERS)),
    reasons: Type.Optional(Type.Array(Type.String(), { description: "The provider's codes, or the service's own." })),
    exchange: Type.Optional(OutboundExchange),
  },
  {
    title: 'CaptchaDecision',
    description: 'Absent if the version requires no captcha, or the request was refused before the check.',
  },
);
export type CaptchaDecision = Static<typeof CaptchaDecision>;

const ProviderTrial = Type.Object(
  {
    provider: oneOf('TriedCaptchaProvider', PROVIDERS),
    are_keys_accepted: Type.Optional(
      Type.Boolean({ description: 'Whether the provider accepts the keys; absent if it did not say.' }),
    ),
    reasons: Type.Array(Type.String(), { description: "The provider's codes, or the service's own." }),
    exchange: Type.Optional(OutboundExchange),
  },
  { title: 'CaptchaProviderTrial' },
);
export type ProviderTrial = Static<typeof ProviderTrial>;

const ORIGIN_LENGTH_MAX = 300;
export const CaptchaTrial = Type.Object({
  origin: Type.Optional(
    Type.String({
      maxLength: ORIGIN_LENGTH_MAX,
      description: 'The page that requests come from, which chooses among keys of several domains.',
    }),
  ),
});
export const CaptchaTrialAnswer = Type.Object({
  providers: Type.Array(ProviderTrial, { description: 'Empty if the version requires no captcha.' }),
});

/** A challenge of ALTCHA's protocol, version 2. */
export const Challenge = Type.Object(
  {
    parameters: Type.Object({
      algorithm: Type.String(),
      cost: Type.Integer({ description: 'PBKDF2 rounds for each key.' }),
      data: Type.Object({ challenge_id: Type.String(), namespace_id: Type.String() }),
      expiresAt: Type.Integer({ description: 'Seconds since 1970.' }),
      keyLength: Type.Integer({ description: 'Bytes.' }),
      keyPrefix: Type.String({ description: 'The first bytes of the key to find, in hexadecimal.' }),
      keySignature: Type.String(),
      nonce: Type.String(),
      salt: Type.String(),
    }),
    signature: Type.String(),
  },
  { description: 'Solve it with a client of ALTCHA (proof of work, version 2), or as docs/captcha.md describes.' },
);
export type Challenge = Static<typeof Challenge>;

/** The decoded response of a client: the challenge as it was issued, and its solution. */
export const SolvedChallenge = Type.Object({
  challenge: Challenge,
  solution: Type.Object({ counter: Type.Integer({ minimum: 0 }), derivedKey: Type.String() }),
});
