import { route } from '../../platform/http/route.ts';
import { Empty, ValidationErrors } from '../../platform/http/shapes.ts';
import type { Namespaces } from './namespaces.ts';
import * as wire from './wire.ts';

const NAMESPACE = '/cloud/games/:game_id/namespaces/:namespace_id';
const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;

/** Routes for the settings of a namespace: the matchmaker's limits, domains and users. */
export function namespaceSettingsRoutes(namespaces: Namespaces) {
  const writing = { allow: ['identity', 'cloud'], access: 'write', response: Empty } as const;
  return [
    route(
      'POST',
      `${NAMESPACE}/mm-config/validate`,
      {
        operation: 'validateMatchmakerLimits',
        summary: "Checks the matchmaker's limits of a namespace without setting them.",
        allow: ['identity', 'cloud'],
        access: 'read',
        body: wire.MatchmakerLimitsBody,
        response: ValidationErrors,
        errors: NOT_FOUND,
      },
      async ({ body }) => ({ errors: namespaces.validateMatchmakerLimits(body) }),
    ),
    route(
      'POST',
      `${NAMESPACE}/mm-config`,
      {
        operation: 'setMatchmakerLimits',
        recorded: ['lobby_count_max', 'max_players'],
        ...writing,
        summary: 'Sets the maximum of lobbies of a namespace and of players per client.',
        body: wire.MatchmakerLimitsBody,
        errors: [...NOT_FOUND, 'VALIDATION_ERROR'],
      },
      async ({ params, body }) => {
        await namespaces.setMatchmakerLimits(params, body);
        return {};
      },
    ),
    route(
      'PUT',
      `${NAMESPACE}/domain-public-auth`,
      {
        operation: 'setDomainPublicAuth',
        recorded: ['enabled'],
        ...writing,
        summary: "Sets whether pages on the namespace's domains may call the matchmaker without a token.",
        body: wire.DomainPublicAuthBody,
        errors: NOT_FOUND,
      },
      async ({ params, body }) => {
        await namespaces.cdn.setDomainPublicAuth(params, body.enabled);
        return {};
      },
    ),
    route(
      'PUT',
      `${NAMESPACE}/cdn-auth`,
      {
        operation: 'setCdnAuthType',
        recorded: ['auth_type'],
        ...writing,
        summary: "Sets whether the namespace's site requires a user and password.",
        body: wire.CdnAuthBody,
        errors: NOT_FOUND,
      },
      async ({ params, body }) => {
        await namespaces.cdn.setAuthType(params, body.auth_type);
        return {};
      },
    ),
    route(
      'POST',
      `${NAMESPACE}/auth-user`,
      {
        operation: 'setCdnAuthUser',
        recorded: ['user'],
        ...writing,
        summary:
          'Adds a user of the site, or changes its password. Send the bcrypt hash of a password of at most 72 bytes.',
        body: wire.AuthUserBody,
        errors: [...NOT_FOUND, 'CDN_INVALID_AUTH_USER_PASSWORD', 'CDN_TOO_MANY_AUTH_USERS', 'VALIDATION_ERROR'],
      },
      async ({ params, body }) => {
        await namespaces.cdn.setUser(params, body);
        return {};
      },
    ),
    route(
      'DELETE',
      `${NAMESPACE}/auth-user/:user`,
      {
        operation: 'removeCdnAuthUser',
        recorded: ['user'],
        ...writing,
        summary: 'Removes a user of the site.',
        free_params: ['user'],
        errors: NOT_FOUND,
      },
      async ({ params }) => {
        await namespaces.cdn.removeUser(params, params.user);
        return {};
      },
    ),
    route(
      'POST',
      `${NAMESPACE}/domains`,
      {
        operation: 'addDomain',
        recorded: ['domain'],
        ...writing,
        summary:
          "Adds a domain to the namespace's site. A DNS record must prove that you own it; the error names the record.",
        body: wire.DomainBody,
        errors: [
          ...NOT_FOUND,
          'CDN_DOMAIN_NOT_CHECKED',
          'CDN_DOMAIN_NOT_PROVEN',
          'CDN_INVALID_DOMAIN',
          'CDN_TOO_MANY_DOMAINS',
          'CLOUD_HOSTNAME_TAKEN',
        ],
      },
      async (call) => {
        const lost = await namespaces.cdn.addDomain(call.params, call.body.domain);
        if (lost && lost.game_id !== call.params.game_id) {
          const { domain, ...loser } = lost;
          call.recordEffect({ ...loser, operation: 'loseDomain', details: { domain } });
        }
        return {};
      },
    ),
    route(
      'DELETE',
      `${NAMESPACE}/domains/:domain`,
      {
        operation: 'removeDomain',
        recorded: ['domain'],
        ...writing,
        summary: 'Removes a domain of the site.',
        free_params: ['domain'],
        errors: NOT_FOUND,
      },
      async ({ params }) => {
        await namespaces.cdn.removeDomain(params, params.domain);
        return {};
      },
    ),
    route(
      'POST',
      `${NAMESPACE}/tokens/development/validate`,
      {
        operation: 'validateDevelopmentToken',
        summary: 'Checks the ports of a development token without creating it.',
        allow: ['identity', 'cloud'],
        access: 'read',
        body: wire.DevelopmentTokenBody,
        response: ValidationErrors,
        errors: [...NOT_FOUND, 'CLOUD_INVALID_CONFIG'],
      },
      async ({ body }) => ({ errors: namespaces.validateDevelopmentToken(body) }),
    ),
  ];
}
