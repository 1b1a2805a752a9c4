import type { Feature } from '../../platform/feature.ts';
import { type Captcha, type CaptchaDependencies, createCaptcha } from './captcha.ts';
import { captchaRoutes } from './routes.ts';

/** Opens the captchas of players. */
export function openCaptcha(dependencies: CaptchaDependencies): Feature<Captcha> {
  const captcha = createCaptcha(dependencies);
  return {
    api: captcha,
    routes: captchaRoutes(captcha),
    startWork: (signal) => [captcha.startForgetting(signal)],
  };
}
