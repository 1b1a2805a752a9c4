import { route } from '../../../../platform/http/route.ts';
import { inEachMinute } from '../../../../platform/limits/limit.ts';
import { asWritten } from '../../json-as-sent.ts';
import type { Lobbies } from '../../lobbies.ts';
import { VerificationTrial, VerificationTrialAnswer } from './trials-wire.ts';

/** Each sends a request to a server of the developer's choice. */
const TRIALS = inEachMinute('verification-trials', 30);

/** Routes by which developers try what a request for seats depends on. */
export function trialRoutes(lobbies: Pick<Lobbies, 'tryVerification'>) {
  return [
    route(
      'POST',
      '/cloud/games/:game_id/namespaces/:namespace_id/matchmaker/verification/try',
      {
        operation: 'tryVerification',
        recorded: ['kind', 'game_mode'],
        summary:
          "Asks the game's verification server as for a request for seats, and returns its verdict and what was exchanged. No seat is taken.",
        allow: ['identity', 'cloud'],
        access: 'write',
        limit: TRIALS,
        body: VerificationTrial,
        response: VerificationTrialAnswer,
        errors: [
          'GAME_NOT_FOUND',
          'GAME_ENVIRONMENT_NOT_FOUND',
          'MATCHMAKER_GAME_MODE_NOT_FOUND',
          'MATCHMAKER_LOBBY_NOT_FOUND',
          'MATCHMAKER_LOBBY_STOPPED',
          'MATCHMAKER_VERIFICATION_NOT_USED',
        ],
      },
      (call) => lobbies.tryVerification(call.params, asWritten(call.body, call.text), call),
    ),
  ];
}
