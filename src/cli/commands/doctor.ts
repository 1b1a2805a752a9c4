import { once } from 'node:events';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { DAY_MS } from '../../shared/units.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { counted } from '../../terminal/terminal.ts';
import { WRONG_KIND } from '../api-caller.ts';
import { checkAddresses } from '../doctor/addresses.ts';
import { CONNECT_WITHIN_MS, type Finding } from '../doctor/finding.ts';
import { checkNamespaceLimits } from '../doctor/limits.ts';
import { checkReadiness } from '../doctor/readiness.ts';
import { otherTokenAdvice } from '../given-token.ts';
import { trustFor } from '../local-service.ts';
import { refusalOf, type Scope, Session, type SharedOptions } from '../session.ts';
import { openTunnel } from '../tunnel.ts';
import { hostOf } from '../url-parts.ts';

/** With a larger difference between the clocks, tokens and signed addresses fail. */
const CLOCK_SKEW_MAX_MS = 30_000;
const CERTIFICATE_DAYS_MIN = 14;

/** The checks of a service that is ready, in the order of their findings. */
const CHECKS: ((session: Session, scope: Scope | undefined) => Promise<Finding[]>)[] = [
  checkClock,
  checkCertificate,
  checkToken,
  checkAddresses,
  checkNamespaceLimits,
];

/**
 * Checks a service from here: its database, disk, clock, certificate, addresses and isolation, the limits that were hit, and
 * your token.
 */
export async function doctor(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { api } = session;
  const { is_ready, findings } = await checkReadiness(api);
  // A service that is not ready answers nothing else.
  if (is_ready) {
    const scope = await findScope(session, options).catch((error) => {
      findings.push(...toFindings(error));
      return undefined;
    });
    for (const check of CHECKS) findings.push(...(await check(session, scope).catch(toFindings)));
  }
  session.show({ url: api.url, findings }, (output) => {
    for (const { what, advice } of findings) {
      output.line(what);
      output.line(`  → ${advice}`);
    }
    if (findings.length === 0) output.line(`${api.url} has no problems.`);
  });
  if (findings.length > 0) throw new Failure(`Problems: ${findings.length}.`);
}

/** Returns the namespace to check. If no option names one and it is not clear, says so and returns undefined. */
async function findScope(session: Session, { game, namespace }: SharedOptions): Promise<Scope | undefined> {
  try {
    return await session.scope();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // The check of the token reports this, too.
    if (error.exit_code === EXIT.not_logged_in) return undefined;
    const is_unclear = error.exit_code === EXIT.not_found || error.exit_code === EXIT.wrong_use;
    if (!is_unclear || game !== undefined || namespace !== undefined) throw error;
    session.output.say(`The namespace was not checked: ${error.message}`);
    return undefined;
  }
}

/** Returns the failure of a check as a finding, so that it hides no other one. */
function toFindings(error: unknown): Finding[] {
  if (!(error instanceof Failure)) throw error;
  return [{ what: error.message, advice: 'Correct what it names, and run the command again to check the rest.' }];
}

async function checkClock({ api: { url } }: Session): Promise<Finding[]> {
  const before = Date.now();
  const signal = AbortSignal.timeout(CONNECT_WITHIN_MS);
  const asked = fetch(`${url}/health/live`, { signal, tls: trustFor(new URL(url)) });
  const { headers } = await asked.catch(({ message }) => {
    throw new Failure(`${url} does not answer any more (${message}).`);
  });
  const skew_ms = new Date(headers.get('date') ?? before).getTime() - (before + Date.now()) / 2;
  if (Math.abs(skew_ms) <= CLOCK_SKEW_MAX_MS) return [];
  const seconds = Math.round(Math.abs(skew_ms) / 1_000);
  const which = skew_ms > 0 ? 'ahead of' : 'behind';
  return [{ what: `The clock of the service is ${seconds} s ${which} yours.`, advice: 'Set both by NTP.' }];
}

async function checkCertificate({ api: { url } }: Session): Promise<Finding[]> {
  const address = new URL(url);
  if (address.protocol !== 'https:') return [];
  const expires = await readExpiry(address);
  const days = Math.floor((expires.getTime() - Date.now()) / DAY_MS);
  if (days >= CERTIFICATE_DAYS_MIN) return [];
  const advice = 'Renew it; with MUSTER_ACME_HOSTS, the log says why that fails (certificate_not_issued).';
  return [{ what: `The certificate of ${address.hostname} expires in ${counted(days, 'day', 'days')}.`, advice }];
}

async function readExpiry(address: URL): Promise<Date> {
  const signal = AbortSignal.timeout(CONNECT_WITHIN_MS);
  try {
    const tunnel = await openTunnel(address, signal);
    const host = hostOf(address);
    // TLS has no name for an address: the certificate is compared with the address itself.
    const socket = connect({
      socket: tunnel,
      host,
      ...(isIP(host) === 0 && { servername: host }),
      ...trustFor(address),
    });
    await once(socket, 'secureConnect', { signal });
    const { valid_to } = socket.getPeerCertificate();
    socket.destroy();
    return new Date(valid_to);
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    throw new Failure(`No TLS connection to ${address.host}: ${reason}.`);
  }
}

async function checkToken({ api, token_source }: Session): Promise<Finding[]> {
  const { url, token, login_advice: advice } = api;
  if (token === undefined) return [{ what: 'You are not logged in.', advice }];
  const failure = await refusalOf(url, token);
  if (!failure) return [];
  const is_of_other_kind = failure.refusal?.code === WRONG_KIND;
  const needed = `Commands need the token of a person or a cloud token: ${otherTokenAdvice('one', url, token_source)}.`;
  return [{ what: failure.message, advice: is_of_other_kind ? needed : advice }];
}
