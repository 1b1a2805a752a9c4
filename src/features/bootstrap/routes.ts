import { findAsset } from '../../platform/assets.ts';
import { ServiceError } from '../../platform/errors.ts';
import { htmlPage } from '../../platform/http/answers.ts';
import { route } from '../../platform/http/route.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { Demo } from './demo.ts';
import { BootstrapAnswer, type ServiceDescription, toBootstrap } from './wire.ts';

interface BootstrapRoutesDependencies extends ServiceDescription {
  namespaces: Namespaces;
  demo: Demo | undefined;
}

/** Routes of the demo page, and of the description that developers' clients request first. */
export function bootstrapRoutes({ namespaces, demo, ...service }: BootstrapRoutesDependencies) {
  return [
    route(
      'GET',
      '/cloud/bootstrap',
      {
        operation: 'getBootstrap',
        summary: 'Describes this service and the addresses of its parts.',
        allow: 'anyone',
        response: BootstrapAnswer,
      },
      async () => toBootstrap(service),
    ),
    route(
      'GET',
      '/demo',
      { summary: 'Returns the page of the demo room.', allow: 'anyone', is_page: true, errors: ['API_NOT_FOUND'] },
      async () => {
        if (!demo) throw new ServiceError('API_NOT_FOUND', {});
        const page = await Bun.file(findAsset('examples/room.html')).text();
        const token = await namespaces.createPublicToken(demo);
        // Lobbies listen on other ports than the page.
        return htmlPage(page.replace('{{public_token}}', token), 'ws: wss:');
      },
    ),
  ];
}
