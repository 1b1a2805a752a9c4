// A program that sends one request to an address, with the environment that it was started with, and prints what came of it.
// Its arguments: the address, what its name resolves to, and whom it trusts (PEM; those whom the system trusts without it).
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
