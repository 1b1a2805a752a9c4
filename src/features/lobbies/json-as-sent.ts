import { mayHaveLongNumbers, parseJsonToSendOn } from '../../platform/http/json.ts';

/** Returns a body with the game's own JSON as it was written, because parsing changes long numbers. */
export function asWritten<Body extends { verification_data?: unknown; lobby_config?: unknown }>(
  body: Body,
  text: string,
): Body {
  const { verification_data, lobby_config } = body;
  if (verification_data === undefined && lobby_config === undefined) return body;
  if (!mayHaveLongNumbers(text)) return body;
  const written = parseJsonToSendOn(text) as Body;
  return {
    ...body,
    ...(verification_data === undefined ? {} : { verification_data: written.verification_data }),
    ...(lobby_config === undefined ? {} : { lobby_config: written.lobby_config }),
  };
}
