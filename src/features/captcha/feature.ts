import type { Feature } from '../../platform/feature.ts';
import { createOutbound } from '../../platform/outbound/outbound.ts';
import { loadKey } from '../../platform/tokens/keys.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { type Captcha, type CaptchaDependencies, createCaptcha } from './captcha.ts';
import { captchaRoutes } from './routes.ts';

type Dependencies = Omit<CaptchaDependencies, 'key' | 'outbound'> & { namespaces: Pick<Namespaces, 'get'> };

/** Opens the captchas of players. */
export async function openCaptcha(dependencies: Dependencies): Promise<Feature<Captcha>> {
  const { database, clock, events, namespaces } = dependencies;
  const key = await loadKey(database.queries, clock, 'captcha');
  // Bulkheads of its own, so that slow verification servers of games do not delay captchas.
  const outbound = createOutbound({
    allowed_private: [],
    onBreak: (destination) => events.emit({ event: 'outbound_target_paused', ...destination }),
  });
  const captcha = createCaptcha({ ...dependencies, key, outbound });
  return {
    api: captcha,
    routes: captchaRoutes(captcha, namespaces),
    startWork: (signal) => [captcha.startDeletingOld(signal)],
  };
}
