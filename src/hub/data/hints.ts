import { NEEDS_TLS, WITHOUT_CRYPTOGRAPHY } from '../bots/protocol.ts';

/** Advice about refused finds of bots, by the code of the error. */
export const BOT_HINTS: Record<string, string> = {
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE:
    'All bots have one address. The settings of the namespace say how many players one address may have.',
  API_RATE_LIMIT: 'All bots have one address. They wait as long as the service says.',
  NO_ANSWER: 'The service did not answer.',
  [WITHOUT_CRYPTOGRAPHY]: `${NEEDS_TLS}.`,
};

/** What is wrong if a request for a seat was refused, by the code of its error. Only errors that people can correct. */
export const REFUSAL_PROBLEMS: Record<string, string> = {
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: 'the verification server did not answer as it should',
  CAPTCHA_CAPTCHA_UNAVAILABLE: 'the captcha provider did not answer',
  MATCHMAKER_LOBBY_NOT_READY: 'lobbies were not ready in time: the logs of their servers may say why',
  MATCHMAKER_TOO_MANY_LOBBIES: 'the namespace had as many lobbies as its settings allow',
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: 'an address had as many players as the settings allow',
  MATCHMAKER_QUEUE_FULL: "the namespace's queue of waiting finds was full",
  SERVERS_ENGINE_UNAVAILABLE: 'the container engine did not answer',
  SERVERS_CLUSTER_UNAVAILABLE: 'the cluster did not answer',
};
