import type { Feature } from '../../platform/feature.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { type Captcha, type CaptchaDependencies, createCaptcha } from './captcha.ts';
import { captchaRoutes } from './routes.ts';

/** Opens the captchas of players. */
export function openCaptcha(
  dependencies: CaptchaDependencies & { namespaces: Pick<Namespaces, 'get'> },
): Feature<Captcha> {
  const captcha = createCaptcha(dependencies);
  return {
    api: captcha,
    routes: captchaRoutes(captcha, dependencies.namespaces),
    startWork: (signal) => [captcha.startForgetting(signal)],
  };
}
