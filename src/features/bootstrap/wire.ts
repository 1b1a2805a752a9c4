import { type Static, Type } from '@sinclair/typebox';
import { oneOf } from '../../platform/http/shapes.ts';
import { isLocalName } from '../../platform/networks.ts';

/** Specification: Bootstrap response. Clients of the reference API also read `deploy_hash`. */
export const BootstrapAnswer = Type.Object({
  cluster: oneOf('ClusterKind', ['enterprise', 'oss']),
  access: oneOf('ClusterAccess', ['public', 'private', 'development']),
  domains: Type.Object({ cdn: Type.String(), job: Type.String(), main: Type.String() }),
  origins: Type.Object({ hub: Type.String() }),
  captcha: Type.Object(
    { turnstile: Type.Optional(Type.Object({ site_key: Type.String() })) },
    { title: 'SharedCaptcha' },
  ),
  login_methods: Type.Object({ email: Type.Boolean(), access_token: Type.Boolean() }),
  deploy_hash: Type.String(),
});

export interface ServiceDescription {
  public_url: string;
  /** The host of the addresses of game servers that are not behind the gateway. */
  server_host: string;
  /** The parent domain of the addresses of game servers behind the gateway. */
  servers_domain: string;
  /** The parent domain of all sites: each namespace has a name below it. */
  sites_domain: string;
  version: string;
  /** Site keys for versions that configure none. */
  shared_captcha_keys: { turnstile?: { site_key: string } };
}

/** Describes the service. Access is private, because only administrators create groups; login is by access token. */
export function toBootstrap(service: ServiceDescription): Static<typeof BootstrapAnswer> {
  const { public_url, server_host, servers_domain, sites_domain, version } = service;
  const { turnstile } = service.shared_captcha_keys;
  return {
    cluster: 'oss',
    access: 'private',
    domains: {
      cdn: sites_domain,
      // As in the addresses of ports, which have no names below `localhost`.
      job: isLocalName(servers_domain) ? server_host : servers_domain,
      main: new URL(public_url).host,
    },
    origins: { hub: public_url },
    captcha: turnstile ? { turnstile: { site_key: turnstile.site_key } } : {},
    login_methods: { email: false, access_token: true },
    deploy_hash: version,
  };
}
