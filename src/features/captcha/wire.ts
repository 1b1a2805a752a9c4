import { type Static, Type } from '@sinclair/typebox';
import { oneOf } from '../../platform/http/shapes.ts';

const CLIENT_RESPONSE_LENGTH_MAX = 8_192;
const ClientResponse = Type.Object(
  {
    client_response: Type.String({
      maxLength: CLIENT_RESPONSE_LENGTH_MAX,
      description: 'What the provider gave to the client for solving it.',
    }),
  },
  { title: 'CaptchaClientResponse' },
);

/** The providers, the one that clients are told of first. */
export const PROVIDERS = ['hcaptcha', 'turnstile', 'pow'] as const;
export type ProviderName = (typeof PROVIDERS)[number];

/** A captcha that was solved, as it comes with a request for seats. */
export const Captcha = Type.Object(
  {
    hcaptcha: Type.Optional(ClientResponse),
    turnstile: Type.Optional(ClientResponse),
    pow: Type.Optional(ClientResponse),
  },
  { title: 'Captcha' },
);
export type Captcha = Static<typeof Captcha>;

/** What a captcha came to, as a receipt says it. */
export const CaptchaDecision = Type.Object(
  {
    decision: Type.Union(
      [
        Type.Literal('solved', { description: 'The provider accepts it.' }),
        Type.Literal('solved_before', { description: 'One was solved from the same place, not too long ago.' }),
        Type.Literal('let_through', { description: 'The provider could not be asked, and that is not to matter.' }),
        Type.Literal('required', { description: 'None came, and one was needed.' }),
        Type.Literal('refused', { description: 'The provider, or something that is checked here, says no.' }),
        Type.Literal('unavailable', { description: 'The provider could not be asked.' }),
      ],
      { title: 'CaptchaOutcome', description: 'Why there was a seat, or none.' },
    ),
    provider: Type.Optional(oneOf('CaptchaProvider', PROVIDERS)),
    reasons: Type.Optional(Type.Array(Type.String(), { description: "The provider's codes, or what was wrong here." })),
  },
  {
    title: 'CaptchaDecision',
    description: 'Not there when the version asks for no captcha, or another refusal came first.',
  },
);
export type CaptchaDecision = Static<typeof CaptchaDecision>;

/** A challenge as clients of ALTCHA's protocol (version 2) take it. */
export const Challenge = Type.Object(
  {
    parameters: Type.Object({
      algorithm: Type.String(),
      cost: Type.Integer({ description: 'Rounds for each key.' }),
      data: Type.Object({ challenge_id: Type.String(), namespace_id: Type.String() }),
      expiresAt: Type.Integer({ description: 'Seconds since 1970.' }),
      keyLength: Type.Integer({ description: 'Bytes.' }),
      keyPrefix: Type.String({ description: 'What the key of the right number begins with, in hexadecimal.' }),
      keySignature: Type.String(),
      nonce: Type.String(),
      salt: Type.String(),
    }),
    signature: Type.String(),
  },
  { description: 'To be solved by a client of ALTCHA (proof of work, version 2), or as docs/captcha.md says.' },
);
export type Challenge = Static<typeof Challenge>;

/** What a client hands in, after decoding: the challenge as it was, and its solution. */
export const SolvedChallenge = Type.Object({
  challenge: Challenge,
  solution: Type.Object({ counter: Type.Integer({ minimum: 0 }), derivedKey: Type.String() }),
});
