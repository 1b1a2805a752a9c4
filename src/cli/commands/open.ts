import { EXIT, Failure } from '../../terminal/failure.ts';
import { openBrowser } from '../browser.ts';
import { Session, type SharedOptions } from '../session.ts';

interface HubLink {
  url: string;
  expire_ts: string;
}

/** Makes a link that opens the hub logged in, at the namespace if one is known. Opens it in a browser, if there is one. */
export async function open(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const link = await makeHubLink(session);
  session.show(link, (output) => {
    output.line(link.url);
    const is_opened = process.stdout.isTTY && openBrowser(link.url);
    output.say(is_opened ? 'Opening it in your browser. It works once.' : 'Open it in a browser. It works once.');
  });
}

/** Makes a link that opens the hub logged in, once, at the namespace of a session. */
export async function makeHubLink(session: Session): Promise<HubLink> {
  const { url, expire_ts } = await session.api.call<HubLink>('POST', '/hub/links', { body: {} });
  const link = new URL(url);
  // A desktop opens other addresses with other programs.
  if (!/^https?:$/.test(link.protocol))
    throw new Failure(`The service answered with ${url}, which is not a web address.`);
  link.pathname = await pathOf(session);
  return { url: link.href, expire_ts };
}

/** Returns the path of the namespace that the options mean; that of all games if they mean none. */
async function pathOf(session: Session): Promise<string> {
  try {
    const { game, namespace } = await session.scope();
    return `/hub/${encodeURIComponent(game.name_id)}/${encodeURIComponent(namespace.name_id)}`;
  } catch (error) {
    // There is no game yet, or there are several and none was named.
    const is_unclear =
      error instanceof Failure && [EXIT.not_found, EXIT.wrong_use].some((code) => code === error.exit_code);
    if (!is_unclear || session.game_name !== undefined) throw error;
    return '/';
  }
}
