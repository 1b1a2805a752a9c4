// Sends one request to an address, with the environment of this process, and prints the outcome. Arguments: the
// address, the addresses to which its name resolves, and the trusted authorities (PEM; by default those of the system).
import { createOutbound, OutboundFailure } from '../../src/platform/outbound/outbound.ts';

const [url = '', resolved = '', certificate_authorities] = process.argv.slice(2);
const outbound = createOutbound({
  allowed_private: ['127.0.0.0/8'],
  resolve: async () => [resolved],
  ...(certificate_authorities === undefined ? {} : { certificate_authorities }),
});
const request = { headers: {}, body: '{}', timeout_ms: 10_000, answer_bytes_max: 0 };
const outcome = await outbound.post(url, request).catch((error: unknown) => error);
console.log(outcome instanceof OutboundFailure ? outcome.kind : JSON.stringify(outcome));
