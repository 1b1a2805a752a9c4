import { findAsset } from '../../platform/assets.ts';
import { htmlPage } from '../../platform/http/answers.ts';
import { route, watched } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { watchState } from '../../platform/watch/views.ts';
import type { Devices } from './devices.ts';
import { CompleteBody, DeviceLink, LinkQuery, PreparedLink } from './wire.ts';

export function deviceRoutes(devices: Devices) {
  return [
    route(
      'POST',
      '/cloud/devices/links',
      {
        operation: 'prepareDeviceLink',
        summary:
          'Prepares a link by which a tool gets a cloud token: a person opens its URL, and the tool watches GET.',
        allow: 'anyone',
        body: Empty,
        response: PreparedLink,
      },
      async () => await devices.prepare(),
    ),
    watched(
      '/cloud/devices/links',
      {
        operation: 'getDeviceLink',
        summary: 'Returns the cloud token of a link once a person has completed it. Needs only the token in the query.',
        allow: 'anyone',
        query: LinkQuery,
        response: DeviceLink,
        errors: ['TOKEN_ERROR'],
      },
      async ({ query }) => {
        const { device_link_id } = await devices.readToken(query.device_link_token);
        return watchState(devices.link, device_link_id, (link) => link);
      },
    ),
    route(
      'POST',
      '/cloud/devices/links/complete',
      {
        operation: 'completeDeviceLink',
        summary: 'Completes a link: gives its tool a cloud token for a game.',
        allow: ['identity'],
        body: CompleteBody,
        response: Empty,
        errors: ['CLOUD_DEVICE_LINK_ALREADY_COMPLETE', 'GAME_NOT_FOUND', 'TOKEN_ERROR'],
      },
      async (call) => {
        const { device_link_token, game_id } = call.body;
        const { at } = await devices.complete(call.caller, device_link_token, game_id.toLowerCase());
        call.recordDetails({ token_issued_ts: at.toISOString() });
        return {};
      },
    ),
    route(
      'GET',
      '/link/:device_link_id',
      {
        summary: 'Leads to the page on which a person completes a link.',
        allow: 'anyone',
        errors: ['TOKEN_ERROR'],
        is_page: true,
      },
      async ({ params }) => {
        const location = `/devices/link/${await devices.tokenOf(params.device_link_id)}`;
        return new Response(null, { status: 302, headers: { location, 'cache-control': 'no-store' } });
      },
    ),
    route(
      'GET',
      '/devices/link/:device_link_token',
      {
        summary: 'Returns the page on which a person completes a link.',
        allow: 'anyone',
        free_params: ['device_link_token'],
        errors: ['TOKEN_ERROR'],
        is_page: true,
      },
      async ({ params }) => {
        const page = await Bun.file(findAsset('src/features/devices/link-page.html')).text();
        return htmlPage(page.replace('{code}', await devices.codeOfLink(params.device_link_token)));
      },
    ),
  ];
}
