import type { TestService } from '../support/service.ts';
import type { ContractClient } from './contract-client.ts';
import { type Created, PICTURE, sendPicture } from './wire-contract-cloud.ts';

/** Calls the operations on people and groups, as games and their pages do. */
export async function callPeople({ call }: ContractClient, { config }: TestService, created: Created): Promise<void> {
  const owner = created.identity;
  const group = { group_id: created.group_id };
  const guest = async () => {
    const { identity, identity_token } = await call('identity_setup', { token: created.public_token, body: {} });
    return { identity_id: identity.identity_id as string, token: identity_token as string };
  };
  const one = await guest();
  const { token, identity_id } = one;
  await call('auth_tokens_refreshIdentityToken', { headers: { origin: config.public_url }, body: {} });
  await call('identity_validateProfile', { token, body: { display_name: 'Ann' } });
  await call('identity_updateProfile', { token, body: { display_name: 'Ann', bio: 'Hello' } });
  const prepared = await call('identity_prepareAvatarUpload', { token, body: PICTURE });
  await sendPicture(prepared);
  await call('identity_completeAvatarUpload', { path: { upload_id: prepared.upload_id }, token });
  await call('identity_getSelfProfile', { token });
  await call('identity_getProfile', { path: { identity_id }, token });
  await call('identity_getHandles', { query: { identity_ids: identity_id }, token });
  await call('identity_getSummaries', { query: { identity_ids: identity_id }, token });
  const { watch } = await call('identity_events_watch', { token });
  await call('identity_markDeletion', { token });
  await call('identity_events_watch', { query: { watch_index: watch.index }, token });
  await call('identity_unmarkDeletion', { token });

  await call('group_validateProfile', { token: owner, body: { display_name: 'Team' } });
  await call('group_updateProfile', { path: group, token: owner, body: { bio: 'We make games' } });
  const picture = await call('group_prepareAvatarUpload', { token: owner, body: PICTURE });
  await sendPicture(picture);
  await call('group_completeAvatarUpload', { path: { ...group, upload_id: picture.upload_id }, token: owner });
  await call('group_listSuggested', { token });
  await call('group_getSummary', { path: group, token });

  const makeInvite = async () => {
    const { code } = await call('group_invites_createInvite', { path: group, token: owner, body: { use_count: 9 } });
    return { group_invite_code: code };
  };
  const invite = await makeInvite();
  await call('group_invites_getInvite', { path: invite, token });
  await call('group_invites_consumeInvite', { path: invite, token });
  await call('group_leave', { path: group, token });
  const [two, three] = [await guest(), await guest()];
  await call('group_joinRequests_createJoinRequest', { path: group, token: two.token });
  await call('group_getJoinRequests', { path: group, token: owner });
  const ids = { ...group, identity_id: two.identity_id };
  await call('group_joinRequests_resolveJoinRequest', { path: ids, token: owner, body: { resolution: true } });
  await call('group_getProfile', { path: group, token: owner });
  await call('group_getMembers', { path: group, token: two.token });
  await call('group_kickMember', { path: ids, token: owner });
  const banned = { ...group, identity_id: three.identity_id };
  await call('group_banIdentity', { path: banned, token: owner });
  await call('group_getBans', { path: group, token: owner });
  await call('group_unbanIdentity', { path: banned, token: owner });
  await call('group_invites_consumeInvite', { path: await makeInvite(), token: three.token });
  const transfer = { new_owner_identity_id: three.identity_id };
  await call('group_transferOwnership', { path: group, token: owner, body: transfer });
}
