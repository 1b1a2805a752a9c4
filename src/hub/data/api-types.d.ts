// Generated from the API document by "bun .ci/documents.ts": the paths that the hub names.
export interface paths {
  '/cloud/service': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getService'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/service/database': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getDatabase'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/service/queue': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getQueue'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/service/log': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listLogEvents'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/service/samples': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listServiceSamples'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/servers/{server_id}/logs/export': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['exportServerLog'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/matchmaker/lobbies/find': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['findLobby'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/matchmaker/lobbies/create': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createLobby'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/matchmaker/lobbies/join': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['joinLobby'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listLobbyRows'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/receipts': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listReceipts'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/receipts/{ray_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getReceipt'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listLobbyHistory'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies/{lobby_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getLobbyHistory'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getLobbyDetails'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}/visits': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listLobbyVisits'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete: operations['deleteLobby'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/players/{player_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete: operations['kickPlayer'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/closed': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put: operations['setLobbyClosedByDeveloper'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/verification/try': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['tryVerification'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/counters': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getCounters'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/service/counters': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getServiceCounters'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/matchmaker/captcha/challenge': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['createCaptchaChallenge'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/captcha/try': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['tryCaptcha'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/servers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listServerRows'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/crashes': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listServerCrashes'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/servers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listServers'];
    put?: never;
    post: operations['createServer'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/servers/{server_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getServer'];
    put?: never;
    post?: never;
    delete: operations['destroyServer'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/servers/{server_id}/end': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getServerEnd'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/servers/{server_id}/usage': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getServerUsage'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/servers/{server_id}/log-lines': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getServerLogLines'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/servers/{server_id}/log-search': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['searchServerLog'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/machines': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listMachines'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/machines/{machine_id}/drain': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put: operations['setMachineDrain'];
    post?: never;
    delete: operations['cancelMachineDrain'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/bootstrap': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getBootstrap'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/hub/links': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createHubLink'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/hub/session': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createHubSession'];
    delete: operations['revokeHubSession'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/hub/session/token': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createHubToken'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/audit-log': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listGameChanges'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/audit-log': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listChanges'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/shares': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listShares'];
    put?: never;
    post: operations['createShare'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/shares/{share_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete: operations['revokeShare'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listGames'];
    put?: never;
    post: operations['createGame'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getGame'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/tokens/cloud': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createCloudToken'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/tokens/revoke': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['revokeTokens'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/auth/inspect': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['inspectToken'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getNamespace'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/version': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put: operations['setNamespaceVersion'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/version-history': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listNamespaceVersions'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createPublicToken'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/tokens/service': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createServiceToken'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['setMatchmakerLimits'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/domain-public-auth': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put: operations['setDomainPublicAuth'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put: operations['setCdnAuthType'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['setCdnAuthUser'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user/{user}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete: operations['removeCdnAuthUser'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/domains': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['addDomain'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/namespaces/{namespace_id}/domains/{domain}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete: operations['removeDomain'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/versions': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createVersion'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/versions/reserve-name': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['reserveVersionName'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/versions/{version_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getVersion'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/builds/prepare': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['prepareBuild'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/builds/{build_id}/complete': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['completeBuild'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/games/{game_id}/environments/{environment_id}/builds/{build_id}/tags': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch: operations['patchBuildTags'];
    trace?: never;
  };
  '/cloud/games/{game_id}/builds': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listGameBuilds'];
    put?: never;
    post: operations['createGameBuild'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/games/{game_id}/uploads/{upload_id}/requests': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['listMissingUploads'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/cloud/uploads/{upload_id}/complete': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['completeUpload'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/group/groups/{group_id}/profile': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getGroupProfile'];
    put?: never;
    post: operations['updateGroupProfile'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/group/groups/{group_id}/kick/{identity_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['kickMember'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/group/groups/{group_id}/leave': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['leaveGroup'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/group/groups/{group_id}/join-request/{identity_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['resolveJoinRequest'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/group/groups/{group_id}/invites': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['createInvite'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/group/invites/{group_invite_code}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getInvite'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/group/invites/{group_invite_code}/consume': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['consumeInvite'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/identity/identities': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations['setUpIdentity'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/identity/identities/self/profile': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getSelfProfile'];
    put?: never;
    post: operations['updateSelfProfile'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/identity/identities/{identity_id}/profile': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['getIdentityProfile'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/health/ready': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations['checkReady'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export type webhooks = Record<string, never>;
export interface components {
  schemas: {
    GetServiceResponse: {
      process: components['schemas']['ServiceProcess'];
      /** @description What is used of each limit of the process. */
      limits: components['schemas']['UsedLimit'][];
      /** @description Its background work. */
      loops: components['schemas']['ServiceLoop'][];
    };
    /** @description The process that answered: several may share one database. */
    ServiceProcess: {
      /** Format: uuid */
      machine_id: string;
      /** @description The name of its host. */
      host: string;
      /** @description The release. */
      version: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      start_ts: string;
    };
    UsedLimit: {
      name: components['schemas']['LimitName'];
      used: number;
      /** @description Absent if it has no limit of its own. */
      max?: number;
    };
    /**
     * @description requests: in progress, to the service itself. watchers: long polls and subscriptions. polls: long polls that wait. sockets: WebSockets that watch. build_reads: builds and layers of images that pods and nodes read.
     * @enum {string}
     */
    LimitName:
      | 'requests'
      | 'watchers'
      | 'polls'
      | 'sockets'
      | 'gateway_requests'
      | 'gateway_sockets'
      | 'relayed_connections'
      | 'transfers'
      | 'build_reads'
      | 'servers'
      | 'file_descriptors'
      | 'memory_bytes';
    ServiceLoop: {
      name: string;
      /** @description Steps since the start. */
      steps: number;
      /** @description RFC 3339, UTC, with milliseconds. */
      last_step_ts?: string;
      /** @description How long the last step took. */
      last_step_ms?: number;
      /** @description RFC 3339. Absent while a step runs. The loop may be woken sooner. */
      next_step_ts?: string;
      /** @description Failed steps in a row. */
      failures: number;
      last_failure?: components['schemas']['ServiceLoopFailure'];
    };
    ServiceLoopFailure: {
      /** @description RFC 3339, UTC, with milliseconds. */
      at_ts: string;
      message: string;
    };
    GetDatabaseResponse: {
      database: components['schemas']['DatabaseState'];
    };
    DatabaseState: {
      /** @description The release of PostgreSQL. */
      version: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      start_ts: string;
      /** @description Bytes. */
      size_bytes: number;
      is_standby: boolean;
      /** @description Whether new transactions may not write. */
      is_read_only: boolean;
      connections: number;
      connections_max: number;
      oldest_transaction?: components['schemas']['DatabaseTransaction'];
      /** @description What is connected, most connections first. */
      programs: components['schemas']['DatabaseProgram'][];
      /** @description The largest tables. */
      tables: components['schemas']['DatabaseTable'][];
      /** @description The standbys that follow it. */
      replicas: components['schemas']['DatabaseReplica'][];
    };
    /** @description Absent if none is open. */
    DatabaseTransaction: {
      /** @description RFC 3339, UTC, with milliseconds. */
      begin_ts: string;
      program: string;
      state: string;
    };
    DatabaseProgram: {
      /** @description As it names itself to PostgreSQL: Muster is "muster". */
      name: string;
      /** @description Absent for connections by a socket of the machine. */
      address?: string;
      connections: number;
      /** @description Those that run a statement. */
      active: number;
      /** @description Those that wait inside a transaction. */
      in_transaction: number;
    };
    DatabaseTable: {
      name: string;
      /** @description Bytes, with its indexes. */
      size_bytes: number;
      /** @description About how many rows it has. */
      rows: number;
      /** @description Old versions of rows that are not removed yet. */
      dead_rows: number;
      /** @description RFC 3339. When dead rows were removed last. */
      vacuum_ts?: string;
    };
    DatabaseReplica: {
      name: string;
      address?: string;
      state: string;
      /** @description Bytes of the log that it has not replayed. Absent if Muster may not see it. */
      lag_bytes?: number;
    };
    GetQueueResponse: {
      /** @description Finds that wait in all namespaces. */
      finds: number;
      /** @description The longest queues. */
      namespaces: components['schemas']['QueueOfNamespace'][];
    };
    QueueOfNamespace: {
      /** Format: uuid */
      game_id: string;
      game_name_id: string;
      /** Format: uuid */
      namespace_id: string;
      namespace_name_id: string;
      finds: number;
      /** @description The seats that these finds want. */
      seats: number;
      /** @description RFC 3339. When the find that has waited longest began to wait. */
      waiting_since_ts: string;
    };
    /**
     * @description Only events of this level or a worse one. Default: info.
     * @enum {string}
     */
    LogEventLevel: 'info' | 'warn' | 'error';
    ListLogEventsResponse: {
      process: components['schemas']['ServiceProcess'];
      /** @description The latest ones, oldest first. */
      events: components['schemas']['LogEvent'][];
    };
    LogEvent: {
      /** @description Rises by one with each event that is kept. */
      number: number;
      /** @description RFC 3339, UTC, with milliseconds. */
      ts: string;
      level: string;
      event: string;
      /** @description As in the log, without secrets; of long ones, only `cut`: the beginning of their JSON. */
      details: {
        [key: string]: unknown;
      };
    };
    ListServiceSamplesResponse: {
      process: components['schemas']['ServiceProcess'];
      /** @description The time between two samples. */
      step_ms: number;
      /** @description Of the last hour, or since the start of the process if that was later. Oldest first. */
      samples: components['schemas']['ServiceSample'][];
    };
    ServiceSample: {
      /** @description RFC 3339, UTC, with milliseconds. */
      ts: string;
      /** @description The time since the previous sample, or since the start. */
      span_ms: number;
      /** @description Processor time since the previous sample, in thousandths of a core. */
      cpu: number;
      /** @description Absent if the process had no free descriptor to read it. */
      memory_bytes?: number;
      /** @description The longest event loop delay since the previous sample. */
      delay_ms: number;
      /** @description Answered since the previous sample. */
      requests: number;
      /** @description Of these, those that failed by a fault of Muster. */
      failed_requests: number;
      sockets: number;
      watchers: number;
      /** @description Of all programs. Absent if PostgreSQL did not answer. */
      database_connections?: number;
    };
    ExportServerLogRequest: {
      stream: components['schemas']['LogStream'];
    };
    /** @enum {string} */
    LogStream: 'std_out' | 'std_err';
    ExportServerLogResponse: {
      /** @description The address of a text file with a time before each line; valid for an hour. */
      url: string;
    };
    FindLobbyRequest: {
      game_modes: string[];
      regions?: string[];
      prevent_auto_create_lobby?: boolean;
      tags?: {
        [key: string]: string;
      };
      max_players?: number;
      /** @description How long to wait for a seat, in the order of arrival, if the namespace is at its limit of lobbies and all are full. If you leave it out, such a find is refused at once. */
      wait_ms?: number;
      /**
       * Format: uuid
       * @description A UUID that the client generates, to watch its position in the queue (/matchmaker/queue/TICKET).
       */
      ticket?: string;
      coordinates?: components['schemas']['Coordinates'];
      latencies?: {
        [key: string]: number;
      };
      /** @description Number of seats in one lobby, for a party. The default is 1. */
      players?: number;
      captcha?: components['schemas']['Captcha'];
      /** @description JSON for external verification. As in every body, it has at most 64 levels, no member named __proto__, and no text with the character zero or half a surrogate pair. */
      verification_data?: unknown;
    };
    /** @description A position on Earth, in degrees. */
    Coordinates: {
      latitude: number;
      longitude: number;
    };
    Captcha: {
      hcaptcha?: components['schemas']['CaptchaClientResponse'];
      turnstile?: components['schemas']['CaptchaClientResponse'];
      pow?: components['schemas']['CaptchaClientResponse'];
    };
    CaptchaClientResponse: {
      /** @description The response that the client got from the provider for solving the captcha. */
      client_response: string;
    };
    FindLobbyResponse: {
      lobby: components['schemas']['JoinLobby'];
      ports: {
        [key: string]: components['schemas']['JoinPort'];
      };
      player: components['schemas']['JoinPlayer'];
      /** @description For a party: the token of each player. */
      players?: components['schemas']['JoinPlayer'][];
    };
    JoinLobby: {
      /** Format: uuid */
      lobby_id: string;
      /** @description A code by which other players can join. */
      code?: string;
      region: components['schemas']['JoinRegion'];
      ports: {
        [key: string]: components['schemas']['JoinPort'];
      };
      player: components['schemas']['JoinPlayer'];
    };
    JoinRegion: {
      region_id: string;
      display_name: string;
    };
    JoinPort: {
      hostname: string;
      host: string | null;
      port: number | null;
      port_range?: components['schemas']['PortRange'];
      is_tls: boolean;
    };
    PortRange: {
      min: number;
      max: number;
    };
    JoinPlayer: {
      token: string;
    };
    CreateLobbyRequest: {
      game_mode: string;
      region?: string;
      publicity?: components['schemas']['LobbyPublicity'];
      tags?: {
        [key: string]: string;
      };
      max_players?: number;
      /** @description JSON of at most 16 KiB. The server of the lobby gets it in SERVICE_LOBBY_CONFIG. As in every body, it has at most 64 levels, no member named __proto__, and no text with the character zero or half a surrogate pair. */
      lobby_config?: unknown;
      coordinates?: components['schemas']['Coordinates'];
      latencies?: {
        [key: string]: number;
      };
      /** @description Number of seats in one lobby, for a party. The default is 1. */
      players?: number;
      captcha?: components['schemas']['Captcha'];
      /** @description JSON for external verification. As in every body, it has at most 64 levels, no member named __proto__, and no text with the character zero or half a surrogate pair. */
      verification_data?: unknown;
    };
    /** @enum {string} */
    LobbyPublicity: 'public' | 'private';
    CreateLobbyResponse: {
      lobby: components['schemas']['JoinLobby'];
      ports: {
        [key: string]: components['schemas']['JoinPort'];
      };
      player: components['schemas']['JoinPlayer'];
      /** @description For a party: the token of each player. */
      players?: components['schemas']['JoinPlayer'][];
    };
    JoinLobbyRequest: {
      /** Format: uuid */
      lobby_id?: string;
      /** @description Code of the lobby. If lobby_id is sent too, both must match. */
      code?: string;
      /** @description Number of seats in one lobby, for a party. The default is 1. */
      players?: number;
      captcha?: components['schemas']['Captcha'];
      /** @description JSON for external verification. As in every body, it has at most 64 levels, no member named __proto__, and no text with the character zero or half a surrogate pair. */
      verification_data?: unknown;
    };
    JoinLobbyResponse: {
      lobby: components['schemas']['JoinLobby'];
      ports: {
        [key: string]: components['schemas']['JoinPort'];
      };
      player: components['schemas']['JoinPlayer'];
      /** @description For a party: the token of each player. */
      players?: components['schemas']['JoinPlayer'][];
    };
    /**
     * @description starting: it is not ready yet.
     * @enum {string}
     */
    LobbyStatus: 'starting' | 'open' | 'closed';
    /**
     * @description By default the newest first.
     * @enum {string}
     */
    LobbyOrder: 'newest' | 'oldest' | 'fullest' | 'emptiest';
    ListLobbyRowsResponse: {
      /** @description The member of a row that identifies it. */
      row_id: string;
      /** @description How many lobbies match the filter. */
      matching: number;
      summary: components['schemas']['LobbySummary'];
      /** @description The rows of the window. Absent if there are changes. */
      rows?: components['schemas']['RunningLobby'][];
      changes?: components['schemas']['LobbyChanges'];
      watch: components['schemas']['WatchIndex'];
    };
    LobbySummary: {
      lobbies: number;
      players: number;
      seats: number;
      empty: number;
      status: components['schemas']['LobbyStatusCounts'];
      game_modes: {
        [key: string]: components['schemas']['LobbyTotal'];
      };
      regions: {
        [key: string]: components['schemas']['LobbyTotal'];
      };
      versions: {
        [key: string]: components['schemas']['LobbyTotal'];
      };
    };
    LobbyStatusCounts: {
      starting: number;
      open: number;
      closed: number;
    };
    LobbyTotal: {
      lobbies: number;
      players: number;
      seats: number;
    };
    RunningLobby: {
      /** Format: uuid */
      lobby_id: string;
      /** Format: uuid */
      server_id: string;
      /** Format: uuid */
      version_id: string;
      game_mode_id: string;
      /** @description Slug of the datacenter. */
      region_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      status: components['schemas']['LobbyStatus'];
      is_closed: boolean;
      publicity?: components['schemas']['LobbyPublicity'];
      max_players_normal: number;
      max_players_direct: number;
      max_players_party: number;
      /** @description Players who have a seat. */
      player_count: number;
      /** @description Players who have connected. */
      connected_count: number;
    };
    /** @description What has changed since `watch_index`: see docs/watch.md. */
    LobbyChanges: {
      /** @description Rows that leave the window. */
      removed: string[];
      /** @description Rows that come into the window, change or move, each with its index. */
      placed: components['schemas']['PlacedLobby'][];
    };
    PlacedLobby: {
      at: number;
      row: components['schemas']['RunningLobby'];
    };
    WatchIndex: {
      index: string;
    };
    ListReceiptsResponse: {
      receipts: components['schemas']['Receipt'][];
      watch: components['schemas']['WatchIndex'];
    };
    Receipt: {
      /** Format: uuid */
      ray_id: string;
      kind: components['schemas']['ReceiptKind'];
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      /** Format: uuid */
      version_id: string;
      request: components['schemas']['ReceiptRequest'];
      captcha?: components['schemas']['CaptchaDecision'];
      /** @description Up to 16 lobbies that were considered, the chosen one first. */
      considered: components['schemas']['ConsideredLobby'][];
      verification?: components['schemas']['VerificationVerdict'];
      /** @description Number of rounds that decided the request: 1, and 1 more for each time that it had to be decided again. */
      rounds: number;
      outcome: components['schemas']['ReceiptOutcome'];
      stages_ms: components['schemas']['ReceiptStages'];
    };
    /** @enum {string} */
    ReceiptKind: 'find' | 'join' | 'create';
    /** @description The request, without the address or identity of its client. */
    ReceiptRequest: {
      game_modes?: string[];
      /** @description The searched regions, in order; those that the request named if it was refused before the search. */
      regions?: string[];
      tags?: {
        [key: string]: string;
      };
      /** Format: uuid */
      lobby_id?: string;
      max_players?: number;
      publicity?: components['schemas']['LobbyPublicity'];
      /** @description Whether to create a lobby if none had a free seat. */
      creates?: boolean;
      players: number;
      /** @description How long the find could wait for its turn. */
      wait_ms?: number;
    };
    /** @description Absent if the version requires no captcha, or the request was refused before the check. */
    CaptchaDecision: {
      decision: components['schemas']['CaptchaOutcome'];
      provider?: components['schemas']['CaptchaProvider'];
      /** @description The provider's codes, or the service's own. */
      reasons?: string[];
      exchange?: components['schemas']['OutboundExchange'];
    };
    /**
     * @description Why the request passed the captcha check, or did not.
     * @enum {string}
     */
    CaptchaOutcome: 'solved' | 'solved_before' | 'let_through' | 'required' | 'refused' | 'unavailable';
    /** @enum {string} */
    CaptchaProvider: 'hcaptcha' | 'turnstile' | 'pow';
    /** @description The request to the other server and its answer, without secrets. */
    OutboundExchange: {
      /** @description Where the request went, without its query. */
      url: string;
      /** @description Values that may be secret are left out. */
      headers: {
        [key: string]: string;
      };
      /** @description What was sent. Texts and numbers that may be secret are only described. */
      body: unknown;
      /** @description The members of the answer that were read; absent if its body is not read. */
      answer?: unknown;
      /** @description HTTP status of the answer; absent if there was none. */
      status?: number;
      /** @description How long the answer, or the failure, took. */
      duration_ms: number;
    };
    ConsideredLobby: {
      /** Format: uuid */
      lobby_id: string;
      game_mode_id: string;
      region_id: string;
      /** @description Seats taken at that time. */
      player_count: number;
      passed_over?: components['schemas']['PassedOver'];
    };
    /**
     * @description Why the lobby was not chosen; absent for the chosen one. "awaited": it is reserved for finds that came earlier. "machine": its machine is being drained, or does not answer.
     * @enum {string}
     */
    PassedOver: 'closed' | 'private' | 'full' | 'tags' | 'awaited' | 'machine' | 'less_full';
    /** @description The result of external verification, if the game mode requires it. */
    VerificationVerdict: {
      game_mode_id: string;
      /** @description The lobby of the planned seat; absent if it was not ready or did not exist yet. */
      lobby_id?: string;
      is_accepted: boolean;
      /** @description HTTP status of the answer. */
      status?: number;
      /** @description Why there was no answer, for example "timeout". */
      failure?: string;
      exchange?: components['schemas']['OutboundExchange'];
    };
    ReceiptOutcome: {
      /** Format: uuid */
      lobby_id?: string;
      is_new?: boolean;
      /** @description The code of the error. */
      code?: string;
    };
    /** @description Milliseconds since the beginning of the request. In order, unless the namespace moved to another version meanwhile. */
    ReceiptStages: {
      /** @description The request was checked against the version. */
      checked?: number;
      /** @description The captcha was checked. */
      captcha?: number;
      /** @description External verification answered, or failed. */
      verified?: number;
      /** @description The find entered the queue. */
      queued?: number;
      /** @description The round that decided the request began. */
      decided?: number;
      /** @description The seats were committed. */
      seated?: number;
      /** @description The lobby was ready. */
      ready?: number;
      answered: number;
    };
    GetReceiptResponse: {
      receipt: components['schemas']['Receipt'];
    };
    ListLobbyHistoryResponse: {
      lobbies: components['schemas']['HistoryLobby'][];
      watch: components['schemas']['WatchIndex'];
    };
    HistoryLobby: {
      /** Format: uuid */
      lobby_id: string;
      /** Format: uuid */
      namespace_id: string;
      lobby_group_name_id: string;
      /** Format: uuid */
      region_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      start_ts?: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      ready_ts?: string;
      status: {
        /** @description Always present, as in the reference API. See whether "stopped" is present. */
        running: Record<string, never>;
        stopped?: components['schemas']['LobbyStop'];
      };
    };
    LobbyStop: {
      /** @description RFC 3339, UTC, with milliseconds. */
      stop_ts: string;
      failed: boolean;
      exit_code: number;
    };
    GetLobbyHistoryResponse: {
      lobby: components['schemas']['HistoryLobby'];
      stdout_presigned_urls: string[];
      stderr_presigned_urls: string[];
      perf_lists: unknown[];
      watch: components['schemas']['WatchIndex'];
    };
    GetLobbyDetailsResponse: {
      lobby: components['schemas']['LobbyDetails'];
      watch: components['schemas']['WatchIndex'];
    };
    LobbyDetails: {
      /** Format: uuid */
      lobby_id: string;
      /** Format: uuid */
      server_id: string;
      /** Format: uuid */
      version_id: string;
      game_mode_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      ready_ts?: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      stop_ts?: string;
      stop_reason?: components['schemas']['LobbyStopReason'];
      is_closed: boolean;
      /** @description When it was closed last; absent while it is open, and if an earlier release closed it. */
      closed_ts?: string;
      publicity?: components['schemas']['LobbyPublicity'];
      /** @description Players join the running lobby by it. */
      code?: string;
      max_players_normal: number;
      max_players_direct: number;
      max_players_party: number;
      tags: {
        [key: string]: string;
      };
      /** @description What its server has set: any JSON. */
      state?: unknown;
      /** @description Players with a seat, in the order in which they got it. */
      players: components['schemas']['SeatedPlayer'][];
    };
    /**
     * @description Why the lobby stopped.
     * @enum {string}
     */
    LobbyStopReason: 'server_ended' | 'not_ready_in_time' | 'idle' | 'removed' | 'machine_lost' | 'machine_drained';
    SeatedPlayer: {
      /** Format: uuid */
      player_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      /** @description When the seat of a player who has not connected is freed; absent until the lobby is ready. */
      seat_deadline_ts?: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      connect_ts?: string;
    };
    ListLobbyVisitsResponse: {
      /** @description In the order in which the players got their seats. */
      visits: components['schemas']['LobbyVisit'][];
      /** @description Whether more players have left, before these. */
      has_earlier: boolean;
      watch: components['schemas']['WatchIndex'];
    };
    LobbyVisit: {
      /** Format: uuid */
      player_id: string;
      /** @description When the player got the seat. */
      create_ts: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      connect_ts?: string;
      /** @description When the seat became free; absent while it is taken. */
      remove_ts?: string;
      remove_reason?: components['schemas']['PlayerRemoveReason'];
    };
    /**
     * @description Why the seat became free.
     * @enum {string}
     */
    PlayerRemoveReason: 'disconnected' | 'seat_expired' | 'timed_out' | 'lobby_stopped' | 'request_ended' | 'kicked';
    DeleteLobbyRequest: Record<string, never>;
    DeleteLobbyResponse: {
      did_remove: boolean;
    };
    KickPlayerRequest: Record<string, never>;
    KickPlayerResponse: {
      did_remove: boolean;
    };
    SetLobbyClosedByDeveloperRequest: {
      is_closed: boolean;
    };
    SetLobbyClosedByDeveloperResponse: Record<string, never>;
    TryVerificationRequest: {
      game_mode: string;
      tags?: {
        [key: string]: string;
      };
      max_players?: number;
      /** @description Number of seats in one lobby, for a party. The default is 1. */
      players?: number;
      /** @description JSON of at most 16 KiB. The server of the lobby gets it in SERVICE_LOBBY_CONFIG. As in every body, it has at most 64 levels, no member named __proto__, and no text with the character zero or half a surrogate pair. */
      lobby_config?: unknown;
      /** @description JSON for external verification. As in every body, it has at most 64 levels, no member named __proto__, and no text with the character zero or half a surrogate pair. */
      verification_data?: unknown;
      kind: components['schemas']['VerifiedKind'];
      /** Format: uuid */
      lobby_id?: string;
    };
    /** @enum {string} */
    VerifiedKind: 'find' | 'join' | 'create';
    TryVerificationResponse: {
      verification: components['schemas']['VerificationVerdict'];
    };
    /**
     * @description The last hour in minutes, the last day in steps of 5 minutes (the default), or the last week in hours.
     * @enum {string}
     */
    CountersWindow: 'hour' | 'day' | 'week';
    GetCountersResponse: {
      step_ms: number;
      /** @description Oldest first. A step in which nothing happened is left out. */
      steps: components['schemas']['CountersStep'][];
      watch: components['schemas']['WatchIndex'];
    };
    CountersStep: {
      /** @description RFC 3339, UTC, with milliseconds. */
      start_ts: string;
      /** @description The highest number of players with a seat, counted once a minute. */
      players: number;
      /** @description The highest number of lobbies, counted once a minute. */
      lobbies: number;
      /** @description Finds that got a seat. */
      finds: number;
      joins: number;
      creates: number;
      /** @description Finds, joins and creates that got no seat, by the code of their error. */
      refused: {
        [key: string]: number;
      };
      /** @description Half of the finds that got a seat took at most this long. */
      find_p50_ms?: number;
      /** @description 95 % of the finds that got a seat took at most this long; at most a tenth too high. */
      find_p95_ms?: number;
    };
    GetServiceCountersResponse: {
      /** @description Oldest first. A minute in which nothing happened is left out. */
      minutes: components['schemas']['CountersMinute'][];
    };
    CountersMinute: {
      /** @description RFC 3339, UTC, with milliseconds. */
      start_ts: string;
      /** @description With a seat. */
      players: number;
      lobbies: number;
      /** @description Finds, joins and creates that got a seat. */
      seated: number;
      /** @description Those that got none. */
      refused: number;
    };
    /** @description Solve it with a client of ALTCHA (proof of work, version 2), or as docs/captcha.md describes. */
    CreateCaptchaChallengeResponse: {
      parameters: {
        algorithm: string;
        /** @description PBKDF2 rounds for each key. */
        cost: number;
        data: {
          challenge_id: string;
          namespace_id: string;
        };
        /** @description Seconds since 1970. */
        expiresAt: number;
        /** @description Bytes. */
        keyLength: number;
        /** @description The first bytes of the key to find, in hexadecimal. */
        keyPrefix: string;
        keySignature: string;
        nonce: string;
        salt: string;
      };
      signature: string;
    };
    TryCaptchaRequest: {
      /** @description The page that requests come from, which chooses among keys of several domains. */
      origin?: string;
    };
    TryCaptchaResponse: {
      /** @description Empty if the version requires no captcha. */
      providers: components['schemas']['CaptchaProviderTrial'][];
    };
    CaptchaProviderTrial: {
      provider: components['schemas']['TriedCaptchaProvider'];
      /** @description Whether the provider accepts the keys; absent if it did not say. */
      are_keys_accepted?: boolean;
      /** @description The provider's codes, or the service's own. */
      reasons: string[];
      exchange?: components['schemas']['OutboundExchange'];
    };
    /** @enum {string} */
    TriedCaptchaProvider: 'hcaptcha' | 'turnstile' | 'pow';
    /**
     * @description ending: its end was requested, and it has not ended yet.
     * @enum {string}
     */
    ServerStatus: 'starting' | 'running' | 'ending' | 'ended';
    /** @enum {string} */
    ServerOrder: 'newest' | 'oldest';
    ListServerRowsResponse: {
      /** @description The member of a row that identifies it. */
      row_id: string;
      summary: components['schemas']['ServerSummary'];
      /** @description The rows of the window. Absent if there are changes. */
      rows?: components['schemas']['ListedServer'][];
      changes?: components['schemas']['ServerChanges'];
      watch: components['schemas']['WatchIndex'];
    };
    /** @description How many servers have not ended, by status. */
    ServerSummary: {
      starting: number;
      running: number;
      ending: number;
    };
    ListedServer: {
      /** Format: uuid */
      server_id: string;
      status: components['schemas']['ServerStatus'];
      /** Format: uuid */
      datacenter_id: string;
      /** Format: uuid */
      build_id: string;
      tags: {
        [key: string]: string;
      };
      resources: components['schemas']['ServerRowResources'];
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      start_ts?: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      destroy_ts?: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      end_ts?: string;
      exit_code?: number;
      exit_signal?: string;
    };
    ServerRowResources: {
      cpu: number;
      memory: number;
    };
    /** @description What has changed since `watch_index`: see docs/watch.md. */
    ServerChanges: {
      removed: string[];
      placed: components['schemas']['ListedServerAt'][];
    };
    ListedServerAt: {
      at: number;
      row: components['schemas']['ListedServer'];
    };
    ListServerCrashesResponse: {
      /** @description The last ten ways in which servers crashed, the latest first, with how many did. */
      crashes: components['schemas']['CrashGroup'][];
      watch: components['schemas']['WatchIndex'];
    };
    CrashGroup: {
      /** @description How the servers ended, in words. */
      summary: string;
      exit_code?: number;
      exit_signal?: string;
      count: number;
      /** Format: uuid */
      last_server_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      last_end_ts: string;
    };
    ListServersResponse: {
      servers: components['schemas']['Server'][];
      watch: components['schemas']['WatchIndex'];
    };
    Server: {
      /** Format: uuid */
      id: string;
      /** Format: uuid */
      environment: string;
      /** Format: uuid */
      datacenter: string;
      created_at: number;
      started_at?: number;
      destroyed_at?: number;
      tags: {
        [key: string]: string;
      };
      lifecycle: components['schemas']['ServerLifecycle'];
      /**
       * Format: uuid
       * @description The server that it restarts.
       */
      restart_of?: string;
      /**
       * Format: uuid
       * @description The server that restarts it.
       */
      restarted_as?: string;
      /** @description Which restart in a row it is. */
      restart_count?: number;
      /** @description The end of the pause before a restart, in milliseconds since 1970. */
      start_after?: number;
      network: components['schemas']['ServerNetwork'];
      resources: components['schemas']['Resources'];
      runtime: components['schemas']['ServerRuntime'];
    };
    ServerLifecycle: {
      kill_timeout?: number;
      /**
       * @description Absent if it is never restarted.
       * @constant
       */
      restart?: 'on_crash';
      /** @description Maximum of restarts in a row, 10 by default. The count starts again after a server has run for 10 minutes. */
      restarts_max?: number;
    };
    ServerNetwork: {
      mode?: components['schemas']['NetworkMode'];
      ports: {
        [key: string]: components['schemas']['ServerPort'];
      };
    };
    /** @enum {string} */
    NetworkMode: 'bridge' | 'host';
    ServerPort: {
      protocol: components['schemas']['Protocol'];
      /** @description The port in PORT_<label>, on which the program must listen. Present once it has started. */
      internal_port?: number;
      public_hostname?: string;
      public_port?: number;
      port_range?: components['schemas']['PortRange'];
      routing: components['schemas']['PortRouting'];
    };
    /** @enum {string} */
    Protocol: 'http' | 'https' | 'tcp' | 'tcp_tls' | 'udp';
    PortRouting: {
      game_guard?: Record<string, never>;
      host?: Record<string, never>;
    };
    Resources: {
      /** @description Thousandths of a core. */
      cpu: number;
      /** @description MiB (1,048,576 bytes). */
      memory: number;
    };
    ServerRuntime: {
      /** Format: uuid */
      build: string;
      arguments?: string[];
      environment?: {
        [key: string]: string;
      };
    };
    CreateServerRequest: {
      /** Format: uuid */
      datacenter: string;
      tags: {
        [key: string]: string;
      };
      runtime: components['schemas']['CreateServerRuntime'];
      network: components['schemas']['CreateServerNetwork'];
      resources: components['schemas']['Resources'];
      lifecycle?: components['schemas']['CreateServerLifecycle'];
    };
    CreateServerRuntime: {
      /** Format: uuid */
      build: string;
      arguments?: string[];
      environment?: {
        [key: string]: string;
      };
    };
    CreateServerNetwork: {
      mode?: components['schemas']['NetworkMode'];
      ports: {
        [key: string]: components['schemas']['CreateServerPort'];
      };
    };
    CreateServerPort: {
      protocol: components['schemas']['Protocol'];
      /** @description The port that the program asks for. A server in a container listens on it. Any other server shares the ports of its machine, so it must listen on the number in the variable PORT_<label>, which is the `internal_port` of answers. */
      internal_port?: number;
      routing?: components['schemas']['PortRouting'];
    };
    CreateServerLifecycle: {
      /** @description Milliseconds. */
      kill_timeout?: number;
      restart?: components['schemas']['RestartPolicy'];
      /** @description Maximum of restarts in a row, 10 by default. The count starts again after a server has run for 10 minutes. */
      restarts_max?: number;
    };
    /**
     * @description Whether another server replaces it. on_crash: after a crash or the loss of its machine. By default never.
     * @enum {string}
     */
    RestartPolicy: 'never' | 'on_crash';
    CreateServerResponse: {
      server: components['schemas']['Server'];
    };
    GetServerResponse: {
      server: components['schemas']['Server'];
      watch: components['schemas']['WatchIndex'];
    };
    DestroyServerRequest: Record<string, never>;
    DestroyServerResponse: Record<string, never>;
    GetServerEndResponse: {
      end?: components['schemas']['ServerEnd'];
      watch: components['schemas']['WatchIndex'];
    };
    /** @description Absent until the server has ended. */
    ServerEnd: {
      /** @description Whether it failed, or ended with an error although its end was not requested. */
      has_crashed: boolean;
      /** @description How it ended, in words. */
      summary: string;
      exit_code?: number;
      exit_signal?: string;
      /** @description The last 20 lines of its log, by time; half of them of each stream, if both have as many. */
      last_lines: components['schemas']['LastLine'][];
    };
    LastLine: {
      stream: components['schemas']['LogStream'];
      /** @description RFC 3339, UTC, with milliseconds. */
      ts: string;
      text: string;
    };
    GetServerUsageResponse: {
      resources: components['schemas']['Resources'];
      samples: components['schemas']['UsageSample'][];
      watch: components['schemas']['WatchIndex'];
    };
    UsageSample: {
      /** @description RFC 3339, UTC, with milliseconds. */
      ts: string;
      /** @description Thousandths of a core, on average over the minute from `ts`. */
      cpu: number;
      /** @description MiB (1,048,576 bytes): the most in this minute. */
      memory?: number;
      /** @description Only for a server whose network traffic is counted. */
      received_bytes?: number;
      /** @description Only for a server whose network traffic is counted. */
      sent_bytes?: number;
    };
    GetServerLogLinesResponse: {
      lines: components['schemas']['LogLine'][];
      watch: components['schemas']['WatchIndex'];
    };
    LogLine: {
      /** @description The number of a line in its stream, from 0. */
      number: number;
      /** @description RFC 3339, UTC, with milliseconds. */
      ts: string;
      /** @description Invalid UTF-8 is replaced by U+FFFD. */
      text: string;
    };
    SearchServerLogResponse: {
      lines: components['schemas']['LogLine'][];
      /** @description The first line that was searched. With 0, nothing is left before it. */
      from_line: number;
      /** @description One more than the number of the last line of the stream. */
      end_line: number;
    };
    ListMachinesResponse: {
      machines: components['schemas']['Machine'][];
    };
    Machine: {
      /** Format: uuid */
      machine_id: string;
      /** Format: uuid */
      datacenter_id: string;
      /** @description The name of its host. */
      host: string;
      state: components['schemas']['MachineState'];
      /** @description RFC 3339, UTC, with milliseconds. */
      since_ts: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      last_beat_ts: string;
      servers: number;
      lobbies: number;
      players: number;
      drain?: components['schemas']['MachineDrain'];
    };
    /**
     * @description "late": its heartbeat is overdue. "resting": its process was stopped and its servers run on. "lost": it was declared lost, with its servers.
     * @enum {string}
     */
    MachineState: 'up' | 'late' | 'resting' | 'stopped' | 'lost';
    /** @description Absent unless it is being drained. */
    MachineDrain: {
      /** @description RFC 3339, UTC, with milliseconds. */
      since_ts: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      deadline_ts?: string;
      /** @description Whether no server is left. */
      is_complete: boolean;
    };
    SetMachineDrainRequest: {
      /** @description Time until the last lobbies and servers end. Absent: lobbies end when they are empty, other servers only when you end them. */
      deadline_ms?: number;
    };
    SetMachineDrainResponse: {
      machine: components['schemas']['Machine'];
    };
    CancelMachineDrainRequest: Record<string, never>;
    CancelMachineDrainResponse: {
      machine: components['schemas']['Machine'];
    };
    GetBootstrapResponse: {
      cluster: components['schemas']['ClusterKind'];
      access: components['schemas']['ClusterAccess'];
      domains: {
        cdn: string;
        job: string;
        main: string;
      };
      origins: {
        hub: string;
      };
      captcha: components['schemas']['SharedCaptcha'];
      login_methods: {
        email: boolean;
        access_token: boolean;
      };
      deploy_hash: string;
    };
    /** @enum {string} */
    ClusterKind: 'enterprise' | 'oss';
    /** @enum {string} */
    ClusterAccess: 'public' | 'private' | 'development';
    SharedCaptcha: {
      turnstile?: {
        site_key: string;
      };
    };
    CreateHubLinkRequest: Record<string, never>;
    CreateHubLinkResponse: {
      /** @description The page that opens logged in. It works once. */
      url: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      expire_ts: string;
    };
    CreateHubSessionRequest: {
      /** @description The text after `#login=` in the URL of a link. */
      code: string;
      /** @description Whether the link may replace the session of another bearer. By default, the request is refused with HUB_OTHER_SESSION, because anyone can send a link. The link then stays valid. */
      replaces_session?: boolean;
    };
    CreateHubSessionResponse: Record<string, never>;
    RevokeHubSessionRequest: Record<string, never>;
    RevokeHubSessionResponse: Record<string, never>;
    CreateHubTokenRequest: Record<string, never>;
    CreateHubTokenResponse: {
      /** @description Absent for a browser without a session. */
      token?: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      expire_ts?: string;
    };
    ListGameChangesResponse: {
      entries: components['schemas']['AuditEntry'][];
      /** @description Value of `before` for the next page, which may be empty. Absent if this page is not full. */
      next?: string;
    };
    AuditEntry: {
      /**
       * Format: uuid
       * @description The ray id of the request. Of a change by another game, an id of its own.
       */
      entry_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      /** @description The operation, as it is called in the API document. loseDomain: another game has proven that the domain is its own. */
      operation: string;
      caller: components['schemas']['AuditCaller'];
      /** @description The address that the request came from. Empty if not shown. */
      address: string;
      user_agent?: string;
      /** Format: uuid */
      game_id?: string;
      /** Format: uuid */
      namespace_id?: string;
      /** Format: uuid */
      group_id?: string;
      /** @description What was changed: ids, names and settings. Never tokens, passwords or codes. */
      details: {
        [key: string]: components['schemas']['AuditDetail'];
      };
      outcome: components['schemas']['AuditOutcome'];
      /** @description The code of the error of a failed change. */
      code?: string;
    };
    AuditCaller: {
      kind: components['schemas']['AuditCallerKind'];
      /** Format: uuid */
      identity_id?: string;
      /** @description The name that the person has now. */
      display_name?: string;
      /** @description When the token was issued, which tells tokens apart. RFC 3339. */
      token_issued_ts?: string;
    };
    /**
     * @description A person, or the token of tools (cloud) or of a back end (service). other_game: someone of another game, whose name and address are not shown.
     * @enum {string}
     */
    AuditCallerKind: 'identity' | 'cloud' | 'service' | 'other_game';
    AuditDetail: string | number | boolean;
    /**
     * @description begun: still under way, or the service stopped meanwhile. failed: the service was at fault; the change may have happened in part. Refused requests have no entry.
     * @enum {string}
     */
    AuditOutcome: 'begun' | 'done' | 'failed';
    ListChangesResponse: {
      entries: components['schemas']['AuditEntry'][];
      /** @description Value of `before` for the next page, which may be empty. Absent if this page is not full. */
      next?: string;
    };
    CreateShareRequest: {
      /**
       * Format: uuid
       * @description The only lobby to see; by default the whole namespace.
       */
      lobby_id?: string;
      /** @description How long the link is valid: 7 days by default, 30 at most. */
      lifetime_ms?: number;
      /** @description What the link is for, to recognize it in the list. */
      display_name?: string;
    };
    CreateShareResponse: {
      /** Format: uuid */
      share_id: string;
      /** @description The page to share. The token is after `#`, so it reaches no log of a server. */
      url: string;
      /** @description Shown only now. */
      token: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      expire_ts: string;
    };
    ListSharesResponse: {
      shares: components['schemas']['Share'][];
    };
    Share: {
      /** Format: uuid */
      share_id: string;
      /** Format: uuid */
      game_id: string;
      /** Format: uuid */
      namespace_id: string;
      /**
       * Format: uuid
       * @description The only lobby to see, if it is one lobby.
       */
      lobby_id?: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      expire_ts: string;
      display_name: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
    };
    RevokeShareRequest: Record<string, never>;
    RevokeShareResponse: Record<string, never>;
    ListGamesResponse: {
      games: components['schemas']['GameSummary'][];
      groups: components['schemas']['GroupSummary'][];
      watch: components['schemas']['WatchIndex'];
    };
    GameSummary: {
      /** Format: uuid */
      game_id: string;
      name_id: string;
      display_name: string;
      logo_url?: string;
      banner_url?: string;
      /** @example https://crab-arena.sites.example.com */
      url: string;
      developer: components['schemas']['GroupHandle'];
      /** @description Players who have a seat, in all namespaces; updated every 5 s. */
      total_player_count: number;
    };
    GroupHandle: {
      /** Format: uuid */
      group_id: string;
      display_name: string;
      avatar_url?: string;
      external: components['schemas']['GroupLinks'];
      is_developer?: boolean;
    };
    GroupLinks: {
      profile: string;
    };
    GroupSummary: {
      /** Format: uuid */
      group_id: string;
      display_name: string;
      bio: string;
      avatar_url?: string;
      external: components['schemas']['GroupLinks'];
      is_developer: boolean;
      is_current_identity_member: boolean;
      member_count: number;
      /** Format: uuid */
      owner_identity_id: string;
      publicity: components['schemas']['GroupPublicity'];
    };
    /** @enum {string} */
    GroupPublicity: 'open' | 'closed';
    CreateGameRequest: {
      display_name: string;
      /** Format: uuid */
      developer_group_id: string;
      /** @description Ignored: the name id is derived from the display name. */
      name_id?: string;
      /** @description Returns the group's game with this display name if there is one, and creates none. */
      if_missing?: boolean;
    };
    CreateGameResponse: {
      /** Format: uuid */
      game_id: string;
    };
    GetGameResponse: {
      game: components['schemas']['Game'];
      watch: components['schemas']['WatchIndex'];
    };
    Game: {
      /** Format: uuid */
      game_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      name_id: string;
      display_name: string;
      /** Format: uuid */
      developer_group_id: string;
      /** @description Players who have a seat, in all namespaces; updated every 5 s. */
      total_player_count: number;
      logo_url?: string;
      banner_url?: string;
      namespaces: components['schemas']['NamespaceSummary'][];
      versions: components['schemas']['VersionSummary'][];
      available_regions: components['schemas']['GameRegion'][];
    };
    NamespaceSummary: {
      /** Format: uuid */
      namespace_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      display_name: string;
      /** Format: uuid */
      version_id: string;
      name_id: string;
    };
    VersionSummary: {
      /** Format: uuid */
      version_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      display_name: string;
    };
    GameRegion: {
      /** Format: uuid */
      region_id: string;
      region_name_id: string;
      provider: string;
      universal_region: string;
      provider_display_name: string;
      region_display_name: string;
    };
    CreateCloudTokenRequest: Record<string, never>;
    CreateCloudTokenResponse: {
      token: string;
    };
    RevokeTokensRequest: Record<string, never>;
    RevokeTokensResponse: Record<string, never>;
    InspectTokenResponse: {
      agent: components['schemas']['IdentityAgent'] | components['schemas']['GameAgent'];
    };
    IdentityAgent: {
      identity: {
        /** Format: uuid */
        identity_id: string;
      };
    };
    GameAgent: {
      game_cloud: {
        /** Format: uuid */
        game_id: string;
      };
    };
    GetNamespaceResponse: {
      namespace: components['schemas']['Namespace'];
    };
    Namespace: {
      /** Format: uuid */
      namespace_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      display_name: string;
      /** Format: uuid */
      version_id: string;
      name_id: string;
      config: components['schemas']['NamespaceConfig'];
    };
    NamespaceConfig: {
      cdn: components['schemas']['NamespaceCdn'];
      matchmaker: components['schemas']['MatchmakerLimits'];
      kv: Record<string, never>;
      identity: Record<string, never>;
    };
    NamespaceCdn: {
      enable_domain_public_auth: boolean;
      domains: components['schemas']['Domain'][];
      auth_type: components['schemas']['CdnAuthType'];
      auth_user_list: components['schemas']['CdnUser'][];
    };
    Domain: {
      domain: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      verification_status: components['schemas']['DomainStatus'];
      verification_method: {
        http: {
          cname_record: string;
        };
      };
      verification_errors: string[];
    };
    /** @enum {string} */
    DomainStatus: 'active' | 'pending' | 'failed';
    /** @enum {string} */
    CdnAuthType: 'none' | 'basic';
    CdnUser: {
      user: string;
    };
    MatchmakerLimits: {
      lobby_count_max: number;
      max_players_per_client: number;
      max_players_per_client_vpn: number;
      max_players_per_client_proxy: number;
      max_players_per_client_tor: number;
      max_players_per_client_hosting: number;
    };
    SetNamespaceVersionRequest: {
      /** Format: uuid */
      version_id: string;
    };
    SetNamespaceVersionResponse: Record<string, never>;
    ListNamespaceVersionsResponse: {
      versions: components['schemas']['NamespaceVersion'][];
    };
    NamespaceVersion: {
      /** Format: uuid */
      namespace_id: string;
      /** Format: uuid */
      version_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      deploy_ts: string;
    };
    CreatePublicTokenRequest: Record<string, never>;
    CreatePublicTokenResponse: {
      token: string;
    };
    CreateServiceTokenRequest: Record<string, never>;
    CreateServiceTokenResponse: {
      token: string;
    };
    SetMatchmakerLimitsRequest: {
      lobby_count_max: number;
      max_players: number;
    };
    SetMatchmakerLimitsResponse: Record<string, never>;
    SetDomainPublicAuthRequest: {
      enabled: boolean;
    };
    SetDomainPublicAuthResponse: Record<string, never>;
    SetCdnAuthTypeRequest: {
      auth_type: components['schemas']['CdnAuthType'];
    };
    SetCdnAuthTypeResponse: Record<string, never>;
    SetCdnAuthUserRequest: {
      user: string;
      password: string;
    };
    SetCdnAuthUserResponse: Record<string, never>;
    RemoveCdnAuthUserRequest: Record<string, never>;
    RemoveCdnAuthUserResponse: Record<string, never>;
    AddDomainRequest: {
      domain: string;
    };
    AddDomainResponse: Record<string, never>;
    RemoveDomainRequest: Record<string, never>;
    RemoveDomainResponse: Record<string, never>;
    CreateVersionRequest: {
      display_name: string;
      config: components['schemas']['VersionConfig'];
    };
    /**
     * @example {
     *       "cdn": {
     *         "site_id": "6a8f5d50-0e64-5b43-8bd4-2d3837910732",
     *         "routes": []
     *       },
     *       "matchmaker": {
     *         "game_modes": {
     *           "deathmatch": {
     *             "max_players": 16,
     *             "regions": {
     *               "frankfurt": {}
     *             },
     *             "docker": {
     *               "image_id": "4715264b-f710-5bc3-bd0c-60cd30cc2e79",
     *               "network_mode": "host",
     *               "ports": {
     *                 "game": {
     *                   "port": 7777,
     *                   "protocol": "udp"
     *                 }
     *               }
     *             }
     *           }
     *         }
     *       }
     *     }
     */
    VersionConfig: {
      scripts?: {
        [key: string]: string;
      };
      engine?: unknown;
      cdn?: components['schemas']['CdnConfig'];
      matchmaker?: components['schemas']['MatchmakerConfig'];
      kv?: Record<string, never>;
      identity?: unknown;
    };
    CdnConfig: {
      build_command?: string;
      build_output?: string;
      build_env?: {
        [key: string]: string;
      };
      /** Format: uuid */
      site_id?: string;
      routes?: components['schemas']['CdnRoute'][];
    };
    CdnRoute: {
      glob: string;
      priority: number;
      middlewares: components['schemas']['CdnMiddleware'][];
    };
    CdnMiddleware: {
      kind: components['schemas']['CdnMiddlewareKind'];
    };
    CdnMiddlewareKind: {
      custom_headers?: components['schemas']['CustomHeaders'];
    };
    CustomHeaders: {
      headers: components['schemas']['CustomHeader'][];
    };
    CustomHeader: {
      name: string;
      value: string;
    };
    MatchmakerConfig: {
      regions?: {
        [key: string]: components['schemas']['RegionConfig'];
      };
      max_players?: number;
      max_players_direct?: number;
      max_players_party?: number;
      docker?: components['schemas']['DockerConfig'];
      tier?: string;
      idle_lobbies?: components['schemas']['IdleLobbies'];
      game_modes?: {
        [key: string]: components['schemas']['GameModeConfig'];
      };
      captcha?: components['schemas']['CaptchaConfig'];
      dev_hostname?: string;
      lobby_groups?: unknown[];
    };
    RegionConfig: {
      tier?: string;
      idle_lobbies?: components['schemas']['IdleLobbies'];
    };
    IdleLobbies: {
      min: number;
      max: number;
    };
    DockerConfig: {
      dockerfile?: string;
      build_args?: {
        [key: string]: string;
      };
      image?: string;
      /** Format: uuid */
      image_id?: string;
      args?: string[];
      env?: {
        [key: string]: string;
      };
      network_mode?: components['schemas']['NetworkMode'];
      ports?: {
        [key: string]: components['schemas']['PortConfig'];
      };
    };
    PortConfig: {
      port?: number;
      port_range?: components['schemas']['PortRange'];
      protocol?: components['schemas']['Protocol'];
      proxy?: components['schemas']['PortProxy'];
      presence?: components['schemas']['PortPresence'];
      dev_port?: number;
      dev_port_range?: components['schemas']['PortRange'];
      dev_protocol?: components['schemas']['Protocol'];
    };
    /** @enum {string} */
    PortProxy: 'none' | 'game_guard';
    /**
     * @description What checks the tokens of players at this port and reports them: the server, or the gateway.
     * @enum {string}
     */
    PortPresence: 'server' | 'gateway';
    GameModeConfig: {
      regions?: {
        [key: string]: components['schemas']['RegionConfig'];
      };
      max_players?: number;
      max_players_direct?: number;
      max_players_party?: number;
      docker?: components['schemas']['DockerConfig'];
      tier?: string;
      idle_lobbies?: components['schemas']['IdleLobbies'];
      listable?: boolean;
      taggable?: boolean;
      allow_dynamic_max_players?: boolean;
      actions?: components['schemas']['ActionsConfig'];
    };
    ActionsConfig: {
      find?: components['schemas']['ActionConfig'];
      join?: components['schemas']['ActionConfig'];
      create?: components['schemas']['CreateActionConfig'];
    };
    ActionConfig: {
      enabled: boolean;
      identity_requirement?: components['schemas']['IdentityRequirement'];
      verification_config?: components['schemas']['VerificationConfig'];
      verification?: components['schemas']['VerificationConfig'];
    };
    /** @enum {string} */
    IdentityRequirement: 'none' | 'guest' | 'registered';
    VerificationConfig: {
      url: string;
      headers?: {
        [key: string]: string;
      };
      /** @description Signs the requests by Standard Webhooks: "whsec_" and 24 to 64 bytes in base64. */
      secret?: string;
    };
    CreateActionConfig: {
      enabled: boolean;
      identity_requirement?: components['schemas']['IdentityRequirement'];
      verification_config?: components['schemas']['VerificationConfig'];
      verification?: components['schemas']['VerificationConfig'];
      enable_public?: boolean;
      enable_private?: boolean;
      max_lobbies_per_identity?: number;
    };
    CaptchaConfig: {
      requests_before_reverify: number;
      verification_ttl: number;
      hcaptcha?: components['schemas']['HcaptchaConfig'];
      turnstile?: components['schemas']['TurnstileConfig'];
      pow?: components['schemas']['ProofOfWorkConfig'];
    };
    HcaptchaConfig: {
      level?: string;
      site_key?: string;
      secret_key?: string;
      /** @description Hosts on which a captcha may be solved, with their subdomains. If you leave it out, the provider decides. */
      hostnames?: string[];
    };
    TurnstileConfig: {
      site_key?: string;
      secret_key?: string;
      domains?: {
        [key: string]: components['schemas']['TurnstileDomain'];
      };
      /** @description Hosts on which a captcha may be solved, with their subdomains. If you leave it out, the provider decides. */
      hostnames?: string[];
    };
    TurnstileDomain: {
      secret_key: string;
    };
    ProofOfWorkConfig: {
      /** @description How many keys a client derives on average (PBKDF2 with 5,000 rounds). The default is 500. */
      difficulty?: number;
    };
    CreateVersionResponse: {
      /** Format: uuid */
      version_id: string;
    };
    ReserveVersionNameRequest: Record<string, never>;
    ReserveVersionNameResponse: {
      version_display_name: string;
    };
    GetVersionResponse: {
      version: components['schemas']['Version'];
    };
    Version: {
      /** Format: uuid */
      version_id: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      display_name: string;
      config: components['schemas']['VersionConfig'];
    };
    PrepareBuildRequest: {
      name: string;
      image_tag?: string;
      image_file: components['schemas']['PrepareFile'];
      /** @default false */
      multipart_upload: boolean;
      /** @description Bytes of each part but the last of a multipart upload, 100 MiB by default. An interrupted upload sends only whole parts again. */
      part_length?: number;
      kind?: components['schemas']['BuildKind'];
      compression?: components['schemas']['Compression'];
      /** @description For an archive: its program and the first arguments, for example ["./server", "--fast"]. For an image or a bundle, it replaces its own program and arguments. A script has none. */
      command?: string[];
      isolation?: components['schemas']['BuildIsolation'];
      /** @description Of no effect: a machine unpacks a build when it first needs it. */
      prewarm_datacenters?: string[];
    };
    PrepareFile: {
      /** @description Name of the file. */
      path: string;
      /** @description Printable ASCII characters. */
      content_type?: string;
      content_length: number;
    };
    /**
     * @description archive: a tar (plain, gzip, lz4 or zstd) and a command. javascript: one .js or .ts file. docker_image: what docker save writes, and oci_bundle: a tar of config.json and rootfs/; both need a container runtime. If you leave it out: a .js or .ts file is javascript. A file without a command is oci_bundle if its name is like oci-bundle.tar, and docker_image if it has an image_tag or its name is like image.tar.lz4. Any other tar is an archive.
     * @enum {string}
     */
    BuildKind: 'archive' | 'javascript' | 'docker_image' | 'oci_bundle';
    /**
     * @description Of no effect: the compression of a file is detected from its first bytes.
     * @enum {string}
     */
    Compression: 'none' | 'lz4' | 'gzip' | 'zstd';
    /**
     * @description Of an archive: whether it runs as a process of the machine (the default), or in a container on the operator's base image, in the folder /server.
     * @enum {string}
     */
    BuildIsolation: 'process' | 'container';
    PrepareBuildResponse: {
      /** Format: uuid */
      build: string;
      image_presigned_request?: components['schemas']['PresignedRequest'];
      image_presigned_requests?: components['schemas']['PresignedRequest'][];
    };
    PresignedRequest: {
      path: string;
      url: string;
      byte_offset: number;
      content_length: number;
    };
    CompleteBuildRequest: Record<string, never>;
    CompleteBuildResponse: Record<string, never>;
    PatchBuildTagsRequest: {
      tags: {
        [key: string]: string | null;
      };
      exclusive_tags?: string[];
    };
    PatchBuildTagsResponse: Record<string, never>;
    CreateGameBuildRequest: {
      display_name: string;
      image_tag?: string;
      image_file: components['schemas']['PrepareFile'];
      /** @default false */
      multipart_upload: boolean;
      /** @description Bytes of each part but the last of a multipart upload, 100 MiB by default. An interrupted upload sends only whole parts again. */
      part_length?: number;
      kind?: components['schemas']['BuildKind'];
      compression?: components['schemas']['Compression'];
      /** @description For an archive: its program and the first arguments, for example ["./server", "--fast"]. For an image or a bundle, it replaces its own program and arguments. A script has none. */
      command?: string[];
      isolation?: components['schemas']['BuildIsolation'];
    };
    CreateGameBuildResponse: {
      /** Format: uuid */
      build_id: string;
      /** Format: uuid */
      upload_id: string;
      image_presigned_request?: components['schemas']['PresignedRequest'];
      image_presigned_requests?: components['schemas']['PresignedRequest'][];
    };
    ListGameBuildsResponse: {
      builds: components['schemas']['BuildSummary'][];
      watch: components['schemas']['WatchIndex'];
    };
    BuildSummary: {
      /** Format: uuid */
      build_id: string;
      /** Format: uuid */
      upload_id: string;
      display_name: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      create_ts: string;
      content_length: number;
      complete: boolean;
      tags: {
        [key: string]: string;
      };
    };
    ListMissingUploadsResponse: {
      /** @description Empty if all parts have arrived. */
      presigned_requests: components['schemas']['PresignedRequest'][];
    };
    CompleteUploadRequest: Record<string, never>;
    CompleteUploadResponse: Record<string, never>;
    GetGroupProfileResponse: {
      group: components['schemas']['GroupProfile'];
      watch: components['schemas']['WatchIndex'];
    };
    GroupProfile: {
      /** Format: uuid */
      group_id: string;
      display_name: string;
      avatar_url?: string;
      external: components['schemas']['GroupLinks'];
      is_developer?: boolean;
      bio: string;
      is_current_identity_member?: boolean;
      publicity: components['schemas']['GroupPublicity'];
      member_count?: number;
      members: components['schemas']['GroupMember'][];
      join_requests: components['schemas']['JoinRequest'][];
      is_current_identity_requesting_join?: boolean;
      /** Format: uuid */
      owner_identity_id: string;
    };
    GroupMember: {
      identity: components['schemas']['IdentityHandle'];
    };
    IdentityHandle: {
      /** Format: uuid */
      identity_id: string;
      display_name: string;
      account_number: number;
      avatar_url: string;
      is_registered: boolean;
      external: components['schemas']['IdentityLinks'];
    };
    IdentityLinks: {
      profile: string;
      settings?: string;
    };
    JoinRequest: {
      identity: components['schemas']['IdentityHandle'];
      /** @description RFC 3339, UTC, with milliseconds. */
      ts: string;
    };
    UpdateGroupProfileRequest: {
      display_name?: string;
      bio?: string;
      publicity?: components['schemas']['GroupPublicity'];
    };
    UpdateGroupProfileResponse: Record<string, never>;
    KickMemberRequest: Record<string, never>;
    KickMemberResponse: Record<string, never>;
    LeaveGroupRequest: Record<string, never>;
    LeaveGroupResponse: Record<string, never>;
    ResolveJoinRequestRequest: {
      resolution?: boolean;
    };
    ResolveJoinRequestResponse: Record<string, never>;
    CreateInviteRequest: {
      /** @description Milliseconds. */
      ttl?: number;
      use_count?: number;
    };
    CreateInviteResponse: {
      code: string;
    };
    GetInviteResponse: {
      group: components['schemas']['GroupHandle'];
    };
    ConsumeInviteRequest: Record<string, never>;
    ConsumeInviteResponse: {
      /** Format: uuid */
      group_id?: string;
    };
    SetUpIdentityRequest: {
      existing_identity_token?: string;
    };
    SetUpIdentityResponse: {
      identity_token: string;
      /** @description RFC 3339, UTC, with milliseconds. */
      identity_token_expire_ts: string;
      identity: components['schemas']['IdentityProfile'];
      /** Format: uuid */
      game_id: string;
    };
    IdentityProfile: {
      /** Format: uuid */
      identity_id: string;
      display_name: string;
      account_number: number;
      avatar_url: string;
      is_registered: boolean;
      external: components['schemas']['IdentityLinks'];
      following: boolean;
      is_following_me: boolean;
      is_mutual_following: boolean;
      is_admin: boolean;
      follower_count: number;
      following_count: number;
      /** @description RFC 3339, UTC, with milliseconds. */
      join_ts: string;
      bio: string;
      linked_accounts: unknown[];
      groups: components['schemas']['IdentityGroup'][];
      games: unknown[];
      awaiting_deletion?: boolean;
    };
    IdentityGroup: {
      group: unknown;
    };
    GetSelfProfileResponse: {
      identity: components['schemas']['IdentityProfile'];
      watch: components['schemas']['WatchIndex'];
    };
    UpdateSelfProfileRequest: {
      display_name?: string;
      account_number?: number;
      bio?: string;
    };
    UpdateSelfProfileResponse: Record<string, never>;
    GetIdentityProfileResponse: {
      identity: components['schemas']['IdentityProfile'];
      watch: components['schemas']['WatchIndex'];
    };
    CheckReadyResponse: {
      status: string;
      /** @description What the operator should fix although the service does its work. */
      warnings?: components['schemas']['Finding'][];
      /** @description How well game servers of this machine are isolated (full, partial or off), and what is missing. */
      isolation?: {
        level: string;
        missing: string[];
      };
      /** @description Requests that rate limits of this process have refused within the last hour, the most first. */
      refused?: {
        limit: string;
        count: number;
      }[];
    };
    Finding: {
      code: components['schemas']['FindingCode'];
      /** @description What is wrong: a sentence without its capital letter and full stop. */
      message: string;
      /** @description What to do about it. */
      advice: string;
    };
    /** @enum {string} */
    FindingCode:
      | 'SERVICE_STARTING'
      | 'SERVICE_STOPPING'
      | 'DATABASE_UNAVAILABLE'
      | 'DATABASE_STANDBY'
      | 'DATABASE_READ_ONLY'
      | 'DATABASE_DISK_FULL'
      | 'OBJECTS_UNAVAILABLE'
      | 'DISK_FULL'
      | 'DISK_RESERVE_USED'
      | 'STORAGE_DIFFERS'
      | 'LOOP_FAILS'
      | 'LIMIT_NEARLY_REACHED'
      | 'MACHINES_DRAINED'
      | 'CERTIFICATE_EXPIRES'
      | 'DATABASE_CONNECTIONS_FEW'
      | 'TRANSACTION_OLD'
      | 'ISOLATION_INCOMPLETE'
      | 'REQUESTS_REFUSED';
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  getService: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "process": {
           *         "machine_id": "53d34790-6855-5dd0-a0a6-fa23d29c84aa",
           *         "host": "play.example.com:26001",
           *         "version": "text",
           *         "start_ts": "2026-01-01T12:00:00.000Z"
           *       },
           *       "limits": [
           *         {
           *           "name": "requests",
           *           "used": 1,
           *           "max": 26009
           *         }
           *       ],
           *       "loops": [
           *         {
           *           "name": "Crab Arena 1.2.0",
           *           "steps": 1,
           *           "last_step_ts": "2026-01-01T12:00:00.000Z",
           *           "last_step_ms": 1,
           *           "next_step_ts": "2026-01-01T12:00:00.000Z",
           *           "failures": 1,
           *           "last_failure": {
           *             "at_ts": "2026-01-01T12:00:00.000Z",
           *             "message": "text"
           *           }
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['GetServiceResponse'];
        };
      };
    };
  };
  getDatabase: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "database": {
           *         "version": "text",
           *         "start_ts": "2026-01-01T12:00:00.000Z",
           *         "size_bytes": 1,
           *         "is_standby": true,
           *         "is_read_only": true,
           *         "connections": 1,
           *         "connections_max": 1,
           *         "oldest_transaction": {
           *           "begin_ts": "2026-01-01T12:00:00.000Z",
           *           "program": "text",
           *           "state": "text"
           *         },
           *         "programs": [
           *           {
           *             "name": "Crab Arena 1.2.0",
           *             "address": "text",
           *             "connections": 1,
           *             "active": 1,
           *             "in_transaction": 1
           *           }
           *         ],
           *         "tables": [
           *           {
           *             "name": "Crab Arena 1.2.0",
           *             "size_bytes": 1,
           *             "rows": 1,
           *             "dead_rows": 1,
           *             "vacuum_ts": "2026-01-01T12:00:00.000Z"
           *           }
           *         ],
           *         "replicas": [
           *           {
           *             "name": "Crab Arena 1.2.0",
           *             "address": "text",
           *             "state": "text",
           *             "lag_bytes": 1
           *           }
           *         ]
           *       }
           *     }
           */
          'application/json': components['schemas']['GetDatabaseResponse'];
        };
      };
    };
  };
  getQueue: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "finds": 1,
           *       "namespaces": [
           *         {
           *           "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80",
           *           "game_name_id": "crab-arena",
           *           "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *           "namespace_name_id": "prod",
           *           "finds": 1,
           *           "seats": 1,
           *           "waiting_since_ts": "2026-01-01T12:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['GetQueueResponse'];
        };
      };
    };
  };
  listLogEvents: {
    parameters: {
      query?: {
        /** @example info */
        level?: components['schemas']['LogEventLevel'];
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "process": {
           *         "machine_id": "53d34790-6855-5dd0-a0a6-fa23d29c84aa",
           *         "host": "play.example.com:26001",
           *         "version": "text",
           *         "start_ts": "2026-01-01T12:00:00.000Z"
           *       },
           *       "events": [
           *         {
           *           "number": 1,
           *           "ts": "2026-01-01T12:00:00.000Z",
           *           "level": "text",
           *           "event": "text",
           *           "details": {
           *             "name": {}
           *           }
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['ListLogEventsResponse'];
        };
      };
    };
  };
  listServiceSamples: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "process": {
           *         "machine_id": "53d34790-6855-5dd0-a0a6-fa23d29c84aa",
           *         "host": "play.example.com:26001",
           *         "version": "text",
           *         "start_ts": "2026-01-01T12:00:00.000Z"
           *       },
           *       "step_ms": 1,
           *       "samples": [
           *         {
           *           "ts": "2026-01-01T12:00:00.000Z",
           *           "span_ms": 1,
           *           "cpu": 500,
           *           "memory_bytes": 1,
           *           "delay_ms": 1,
           *           "requests": 1,
           *           "failed_requests": 1,
           *           "sockets": 1,
           *           "watchers": 1,
           *           "database_connections": 1
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['ListServiceSamplesResponse'];
        };
      };
    };
  };
  exportServerLog: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 111ac65c-204e-5e42-b177-53321c0a1334 */
        server_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "stream": "std_out"
         *     }
         */
        'application/json': components['schemas']['ExportServerLogRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "url": "https://play.example.com/download?signature=…"
           *     }
           */
          'application/json': components['schemas']['ExportServerLogResponse'];
        };
      };
    };
  };
  findLobby: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "game_modes": [
         *         "deathmatch"
         *       ]
         *     }
         */
        'application/json': components['schemas']['FindLobbyRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lobby": {
           *         "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *         "code": "ABCD2345",
           *         "region": {
           *           "region_id": "frankfurt",
           *           "display_name": "Crab Arena"
           *         },
           *         "ports": {
           *           "game": {
           *             "hostname": "play.example.com",
           *             "host": "play.example.com:26001",
           *             "port": 26001,
           *             "port_range": {
           *               "min": 26000,
           *               "max": 26009
           *             },
           *             "is_tls": false
           *           }
           *         },
           *         "player": {
           *           "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *         }
           *       },
           *       "ports": {
           *         "game": {
           *           "hostname": "play.example.com",
           *           "host": "play.example.com:26001",
           *           "port": 26001,
           *           "port_range": {
           *             "min": 26000,
           *             "max": 26009
           *           },
           *           "is_tls": false
           *         }
           *       },
           *       "player": {
           *         "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *       },
           *       "players": [
           *         {
           *           "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['FindLobbyResponse'];
        };
      };
    };
  };
  createLobby: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "game_mode": "deathmatch"
         *     }
         */
        'application/json': components['schemas']['CreateLobbyRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lobby": {
           *         "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *         "code": "ABCD2345",
           *         "region": {
           *           "region_id": "frankfurt",
           *           "display_name": "Crab Arena"
           *         },
           *         "ports": {
           *           "game": {
           *             "hostname": "play.example.com",
           *             "host": "play.example.com:26001",
           *             "port": 26001,
           *             "port_range": {
           *               "min": 26000,
           *               "max": 26009
           *             },
           *             "is_tls": false
           *           }
           *         },
           *         "player": {
           *           "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *         }
           *       },
           *       "ports": {
           *         "game": {
           *           "hostname": "play.example.com",
           *           "host": "play.example.com:26001",
           *           "port": 26001,
           *           "port_range": {
           *             "min": 26000,
           *             "max": 26009
           *           },
           *           "is_tls": false
           *         }
           *       },
           *       "player": {
           *         "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *       },
           *       "players": [
           *         {
           *           "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['CreateLobbyResponse'];
        };
      };
    };
  };
  joinLobby: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
         *       "code": "ABCD2345",
         *       "players": 1,
         *       "captcha": {
         *         "hcaptcha": {
         *           "client_response": "P1_eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9…"
         *         },
         *         "turnstile": {
         *           "client_response": "P1_eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9…"
         *         },
         *         "pow": {
         *           "client_response": "P1_eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9…"
         *         }
         *       },
         *       "verification_data": {
         *         "session": "of your own"
         *       }
         *     }
         */
        'application/json': components['schemas']['JoinLobbyRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lobby": {
           *         "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *         "code": "ABCD2345",
           *         "region": {
           *           "region_id": "frankfurt",
           *           "display_name": "Crab Arena"
           *         },
           *         "ports": {
           *           "game": {
           *             "hostname": "play.example.com",
           *             "host": "play.example.com:26001",
           *             "port": 26001,
           *             "port_range": {
           *               "min": 26000,
           *               "max": 26009
           *             },
           *             "is_tls": false
           *           }
           *         },
           *         "player": {
           *           "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *         }
           *       },
           *       "ports": {
           *         "game": {
           *           "hostname": "play.example.com",
           *           "host": "play.example.com:26001",
           *           "port": 26001,
           *           "port_range": {
           *             "min": 26000,
           *             "max": 26009
           *           },
           *           "is_tls": false
           *         }
           *       },
           *       "player": {
           *         "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *       },
           *       "players": [
           *         {
           *           "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['JoinLobbyResponse'];
        };
      };
    };
  };
  listLobbyRows: {
    parameters: {
      query?: {
        /** @example deathmatch */
        game_mode_id?: string;
        /** @example frankfurt */
        region_id?: string;
        /** @example 6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59 */
        version_id?: string;
        /** @example eac53687-6e25-50a7-b5a8-1a548e4ab0f5 */
        other_than_version_id?: string;
        /** @example text */
        id?: string;
        /** @example starting */
        status?: components['schemas']['LobbyStatus'];
        /** @example true */
        is_empty?: boolean;
        /** @example true */
        is_full?: boolean;
        /** @example newest */
        order?: components['schemas']['LobbyOrder'];
        /** @example 1 */
        from?: number;
        /** @example 32 */
        count?: number;
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "row_id": "text",
           *       "matching": 1,
           *       "summary": {
           *         "lobbies": 1,
           *         "players": 1,
           *         "seats": 1,
           *         "empty": 1,
           *         "status": {
           *           "starting": 1,
           *           "open": 1,
           *           "closed": 1
           *         },
           *         "game_modes": {
           *           "deathmatch": {
           *             "lobbies": 1,
           *             "players": 1,
           *             "seats": 1
           *           }
           *         },
           *         "regions": {
           *           "frankfurt": {
           *             "lobbies": 1,
           *             "players": 1,
           *             "seats": 1
           *           }
           *         },
           *         "versions": {
           *           "name": {
           *             "lobbies": 1,
           *             "players": 1,
           *             "seats": 1
           *           }
           *         }
           *       },
           *       "rows": [
           *         {
           *           "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *           "server_id": "111ac65c-204e-5e42-b177-53321c0a1334",
           *           "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *           "game_mode_id": "deathmatch",
           *           "region_id": "frankfurt",
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "status": "starting",
           *           "is_closed": true,
           *           "publicity": "public",
           *           "max_players_normal": 16,
           *           "max_players_direct": 18,
           *           "max_players_party": 16,
           *           "player_count": 7,
           *           "connected_count": 1
           *         }
           *       ],
           *       "changes": {
           *         "removed": [
           *           "467b0af8-5cc6-5a48-8933-42f7e0e570d8"
           *         ],
           *         "placed": [
           *           {
           *             "at": 1,
           *             "row": {
           *               "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *               "server_id": "111ac65c-204e-5e42-b177-53321c0a1334",
           *               "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *               "game_mode_id": "deathmatch",
           *               "region_id": "frankfurt",
           *               "create_ts": "2026-01-01T12:00:00.000Z",
           *               "status": "starting",
           *               "is_closed": true,
           *               "publicity": "public",
           *               "max_players_normal": 16,
           *               "max_players_direct": 18,
           *               "max_players_party": 16,
           *               "player_count": 7,
           *               "connected_count": 1
           *             }
           *           }
           *         ]
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListLobbyRowsResponse'];
        };
      };
    };
  };
  listReceipts: {
    parameters: {
      query?: {
        /** @example 2026-01-02T00:00:00.000Z */
        before_create_ts?: string;
        /** @example true */
        is_refused?: boolean;
        /** @example ABCD2345 */
        code?: string;
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "receipts": [
           *         {
           *           "ray_id": "8b2e6652-3d95-5b8d-bd3b-1ddad7a3eb47",
           *           "kind": "find",
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *           "request": {
           *             "game_modes": [
           *               "deathmatch"
           *             ],
           *             "regions": [
           *               "frankfurt"
           *             ],
           *             "tags": {
           *               "map": "beach"
           *             },
           *             "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *             "max_players": 16,
           *             "publicity": "public",
           *             "creates": true,
           *             "players": 1,
           *             "wait_ms": 1
           *           },
           *           "captcha": {
           *             "decision": "solved",
           *             "provider": "hcaptcha",
           *             "reasons": [
           *               "text"
           *             ],
           *             "exchange": {
           *               "url": "https://play.example.com/download?signature=…",
           *               "headers": {
           *                 "name": "text"
           *               },
           *               "body": {},
           *               "answer": {},
           *               "status": 1,
           *               "duration_ms": 1
           *             }
           *           },
           *           "considered": [
           *             {
           *               "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *               "game_mode_id": "deathmatch",
           *               "region_id": "frankfurt",
           *               "player_count": 7,
           *               "passed_over": "closed"
           *             }
           *           ],
           *           "verification": {
           *             "game_mode_id": "deathmatch",
           *             "lobby_id": "text",
           *             "is_accepted": true,
           *             "status": 1,
           *             "failure": "text",
           *             "exchange": {
           *               "url": "https://play.example.com/download?signature=…",
           *               "headers": {
           *                 "name": "text"
           *               },
           *               "body": {},
           *               "answer": {},
           *               "status": 1,
           *               "duration_ms": 1
           *             }
           *           },
           *           "rounds": 1,
           *           "outcome": {
           *             "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *             "is_new": true,
           *             "code": "ABCD2345"
           *           },
           *           "stages_ms": {
           *             "checked": 1,
           *             "captcha": 1,
           *             "verified": 1,
           *             "queued": 1,
           *             "decided": 1,
           *             "seated": 1,
           *             "ready": 1,
           *             "answered": 1
           *           }
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListReceiptsResponse'];
        };
      };
    };
  };
  getReceipt: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
        /** @example 8b2e6652-3d95-5b8d-bd3b-1ddad7a3eb47 */
        ray_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "receipt": {
           *         "ray_id": "8b2e6652-3d95-5b8d-bd3b-1ddad7a3eb47",
           *         "kind": "find",
           *         "create_ts": "2026-01-01T12:00:00.000Z",
           *         "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *         "request": {
           *           "game_modes": [
           *             "deathmatch"
           *           ],
           *           "regions": [
           *             "frankfurt"
           *           ],
           *           "tags": {
           *             "map": "beach"
           *           },
           *           "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *           "max_players": 16,
           *           "publicity": "public",
           *           "creates": true,
           *           "players": 1,
           *           "wait_ms": 1
           *         },
           *         "captcha": {
           *           "decision": "solved",
           *           "provider": "hcaptcha",
           *           "reasons": [
           *             "text"
           *           ],
           *           "exchange": {
           *             "url": "https://play.example.com/download?signature=…",
           *             "headers": {
           *               "name": "text"
           *             },
           *             "body": {},
           *             "answer": {},
           *             "status": 1,
           *             "duration_ms": 1
           *           }
           *         },
           *         "considered": [
           *           {
           *             "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *             "game_mode_id": "deathmatch",
           *             "region_id": "frankfurt",
           *             "player_count": 7,
           *             "passed_over": "closed"
           *           }
           *         ],
           *         "verification": {
           *           "game_mode_id": "deathmatch",
           *           "lobby_id": "text",
           *           "is_accepted": true,
           *           "status": 1,
           *           "failure": "text",
           *           "exchange": {
           *             "url": "https://play.example.com/download?signature=…",
           *             "headers": {
           *               "name": "text"
           *             },
           *             "body": {},
           *             "answer": {},
           *             "status": 1,
           *             "duration_ms": 1
           *           }
           *         },
           *         "rounds": 1,
           *         "outcome": {
           *           "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *           "is_new": true,
           *           "code": "ABCD2345"
           *         },
           *         "stages_ms": {
           *           "checked": 1,
           *           "captcha": 1,
           *           "verified": 1,
           *           "queued": 1,
           *           "decided": 1,
           *           "seated": 1,
           *           "ready": 1,
           *           "answered": 1
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['GetReceiptResponse'];
        };
      };
    };
  };
  listLobbyHistory: {
    parameters: {
      query?: {
        /** @example 2026-01-02T00:00:00.000Z */
        before_create_ts?: string;
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lobbies": [
           *         {
           *           "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *           "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *           "lobby_group_name_id": "deathmatch",
           *           "region_id": "a84d4c45-7ca9-5c10-a190-bfbafd8a84a4",
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "start_ts": "2026-01-01T12:00:00.000Z",
           *           "ready_ts": "2026-01-01T12:00:00.000Z",
           *           "status": {
           *             "running": {},
           *             "stopped": {
           *               "stop_ts": "2026-01-01T12:00:00.000Z",
           *               "failed": true,
           *               "exit_code": 0
           *             }
           *           }
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListLobbyHistoryResponse'];
        };
      };
    };
  };
  getLobbyHistory: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
        /** @example 91bb0356-1c39-505d-8aaf-4feb6858bb1c */
        lobby_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lobby": {
           *         "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *         "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *         "lobby_group_name_id": "deathmatch",
           *         "region_id": "a84d4c45-7ca9-5c10-a190-bfbafd8a84a4",
           *         "create_ts": "2026-01-01T12:00:00.000Z",
           *         "start_ts": "2026-01-01T12:00:00.000Z",
           *         "ready_ts": "2026-01-01T12:00:00.000Z",
           *         "status": {
           *           "running": {},
           *           "stopped": {
           *             "stop_ts": "2026-01-01T12:00:00.000Z",
           *             "failed": true,
           *             "exit_code": 0
           *           }
           *         }
           *       },
           *       "stdout_presigned_urls": [
           *         "text"
           *       ],
           *       "stderr_presigned_urls": [
           *         "text"
           *       ],
           *       "perf_lists": [
           *         {}
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetLobbyHistoryResponse'];
        };
      };
    };
  };
  getLobbyDetails: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
        /** @example 91bb0356-1c39-505d-8aaf-4feb6858bb1c */
        lobby_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lobby": {
           *         "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *         "server_id": "111ac65c-204e-5e42-b177-53321c0a1334",
           *         "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *         "game_mode_id": "deathmatch",
           *         "create_ts": "2026-01-01T12:00:00.000Z",
           *         "ready_ts": "2026-01-01T12:00:00.000Z",
           *         "stop_ts": "2026-01-01T12:00:00.000Z",
           *         "stop_reason": "server_ended",
           *         "is_closed": true,
           *         "closed_ts": "2026-01-01T12:00:00.000Z",
           *         "publicity": "public",
           *         "code": "ABCD2345",
           *         "max_players_normal": 16,
           *         "max_players_direct": 18,
           *         "max_players_party": 16,
           *         "tags": {
           *           "map": "beach"
           *         },
           *         "state": {
           *           "round": 3
           *         },
           *         "players": [
           *           {
           *             "player_id": "eb028481-8db0-59e6-bb9a-4407451f12aa",
           *             "create_ts": "2026-01-01T12:00:00.000Z",
           *             "seat_deadline_ts": "2026-01-01T12:00:00.000Z",
           *             "connect_ts": "2026-01-01T12:00:00.000Z"
           *           }
           *         ]
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetLobbyDetailsResponse'];
        };
      };
    };
  };
  listLobbyVisits: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
        /** @example 91bb0356-1c39-505d-8aaf-4feb6858bb1c */
        lobby_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "visits": [
           *         {
           *           "player_id": "eb028481-8db0-59e6-bb9a-4407451f12aa",
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "connect_ts": "2026-01-01T12:00:00.000Z",
           *           "remove_ts": "2026-01-01T12:00:00.000Z",
           *           "remove_reason": "disconnected"
           *         }
           *       ],
           *       "has_earlier": true,
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListLobbyVisitsResponse'];
        };
      };
    };
  };
  deleteLobby: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 91bb0356-1c39-505d-8aaf-4feb6858bb1c */
        lobby_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['DeleteLobbyRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "did_remove": true
           *     }
           */
          'application/json': components['schemas']['DeleteLobbyResponse'];
        };
      };
    };
  };
  kickPlayer: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 91bb0356-1c39-505d-8aaf-4feb6858bb1c */
        lobby_id: string;
        /** @example eb028481-8db0-59e6-bb9a-4407451f12aa */
        player_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['KickPlayerRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "did_remove": true
           *     }
           */
          'application/json': components['schemas']['KickPlayerResponse'];
        };
      };
    };
  };
  setLobbyClosedByDeveloper: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 91bb0356-1c39-505d-8aaf-4feb6858bb1c */
        lobby_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "is_closed": true
         *     }
         */
        'application/json': components['schemas']['SetLobbyClosedByDeveloperRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['SetLobbyClosedByDeveloperResponse'];
        };
      };
    };
  };
  tryVerification: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "game_mode": "deathmatch",
         *       "kind": "find"
         *     }
         */
        'application/json': components['schemas']['TryVerificationRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "verification": {
           *         "game_mode_id": "deathmatch",
           *         "lobby_id": "text",
           *         "is_accepted": true,
           *         "status": 1,
           *         "failure": "text",
           *         "exchange": {
           *           "url": "https://play.example.com/download?signature=…",
           *           "headers": {
           *             "name": "text"
           *           },
           *           "body": {},
           *           "answer": {},
           *           "status": 1,
           *           "duration_ms": 1
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['TryVerificationResponse'];
        };
      };
    };
  };
  getCounters: {
    parameters: {
      query?: {
        /** @example hour */
        window?: components['schemas']['CountersWindow'];
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "step_ms": 1,
           *       "steps": [
           *         {
           *           "start_ts": "2026-01-01T12:00:00.000Z",
           *           "players": 1,
           *           "lobbies": 1,
           *           "finds": 1,
           *           "joins": 1,
           *           "creates": 1,
           *           "refused": {
           *             "name": 1
           *           },
           *           "find_p50_ms": 1,
           *           "find_p95_ms": 1
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetCountersResponse'];
        };
      };
    };
  };
  getServiceCounters: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "minutes": [
           *         {
           *           "start_ts": "2026-01-01T12:00:00.000Z",
           *           "players": 1,
           *           "lobbies": 1,
           *           "seated": 1,
           *           "refused": 1
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['GetServiceCountersResponse'];
        };
      };
    };
  };
  createCaptchaChallenge: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "parameters": {
           *         "algorithm": "text",
           *         "cost": 1,
           *         "data": {
           *           "challenge_id": "text",
           *           "namespace_id": "text"
           *         },
           *         "expiresAt": 1,
           *         "keyLength": 1,
           *         "keyPrefix": "text",
           *         "keySignature": "text",
           *         "nonce": "text",
           *         "salt": "text"
           *       },
           *       "signature": "text"
           *     }
           */
          'application/json': components['schemas']['CreateCaptchaChallengeResponse'];
        };
      };
    };
  };
  tryCaptcha: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "origin": "text"
         *     }
         */
        'application/json': components['schemas']['TryCaptchaRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "providers": [
           *         {
           *           "provider": "hcaptcha",
           *           "are_keys_accepted": true,
           *           "reasons": [
           *             "text"
           *           ],
           *           "exchange": {
           *             "url": "https://play.example.com/download?signature=…",
           *             "headers": {
           *               "name": "text"
           *             },
           *             "body": {},
           *             "answer": {},
           *             "status": 1,
           *             "duration_ms": 1
           *           }
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['TryCaptchaResponse'];
        };
      };
    };
  };
  listServerRows: {
    parameters: {
      query?: {
        /** @example starting */
        status?: components['schemas']['ServerStatus'];
        /** @example newest */
        order?: components['schemas']['ServerOrder'];
        /** @example 1 */
        from?: number;
        /** @example 32 */
        count?: number;
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "row_id": "text",
           *       "summary": {
           *         "starting": 1,
           *         "running": 1,
           *         "ending": 1
           *       },
           *       "rows": [
           *         {
           *           "server_id": "111ac65c-204e-5e42-b177-53321c0a1334",
           *           "status": "starting",
           *           "datacenter_id": "70376364-70ec-5aea-976f-f99665182863",
           *           "build_id": "237f12c5-0fa6-547d-a896-a80aa88acb0b",
           *           "tags": {
           *             "map": "beach"
           *           },
           *           "resources": {
           *             "cpu": 500,
           *             "memory": 256
           *           },
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "start_ts": "2026-01-01T12:00:00.000Z",
           *           "destroy_ts": "2026-01-01T12:00:00.000Z",
           *           "end_ts": "2026-01-01T12:00:00.000Z",
           *           "exit_code": 0,
           *           "exit_signal": "text"
           *         }
           *       ],
           *       "changes": {
           *         "removed": [
           *           "467b0af8-5cc6-5a48-8933-42f7e0e570d8"
           *         ],
           *         "placed": [
           *           {
           *             "at": 1,
           *             "row": {
           *               "server_id": "111ac65c-204e-5e42-b177-53321c0a1334",
           *               "status": "starting",
           *               "datacenter_id": "70376364-70ec-5aea-976f-f99665182863",
           *               "build_id": "237f12c5-0fa6-547d-a896-a80aa88acb0b",
           *               "tags": {
           *                 "map": "beach"
           *               },
           *               "resources": {
           *                 "cpu": 500,
           *                 "memory": 256
           *               },
           *               "create_ts": "2026-01-01T12:00:00.000Z",
           *               "start_ts": "2026-01-01T12:00:00.000Z",
           *               "destroy_ts": "2026-01-01T12:00:00.000Z",
           *               "end_ts": "2026-01-01T12:00:00.000Z",
           *               "exit_code": 0,
           *               "exit_signal": "text"
           *             }
           *           }
           *         ]
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListServerRowsResponse'];
        };
      };
    };
  };
  listServerCrashes: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "crashes": [
           *         {
           *           "summary": "text",
           *           "exit_code": 0,
           *           "exit_signal": "text",
           *           "count": 32,
           *           "last_server_id": "e5f244c9-1ccd-5053-9e22-0044ab285f84",
           *           "last_end_ts": "2026-01-01T12:00:00.000Z"
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListServerCrashesResponse'];
        };
      };
    };
  };
  listServers: {
    parameters: {
      query?: {
        /** @example {"map":"beach"} */
        tags_json?: string;
        /** @example true */
        include_destroyed?: boolean;
        /** @example 308ff414-1c79-57da-9ccb-ccac699e3544 */
        cursor?: string;
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "servers": [
           *         {
           *           "id": "df8cf32f-7b62-5b74-b5e6-cb8fdbfeada6",
           *           "environment": "82505923-bb04-5c13-b30f-b9e8926a04bf",
           *           "datacenter": "625dc90c-b42b-5afe-8b2e-d4d0d22117ce",
           *           "created_at": 1767225600000,
           *           "started_at": 1767225601000,
           *           "destroyed_at": 1767229200000,
           *           "tags": {
           *             "map": "beach"
           *           },
           *           "lifecycle": {
           *             "kill_timeout": 30000,
           *             "restart": "on_crash",
           *             "restarts_max": 1
           *           },
           *           "restart_of": "a62f4d13-7c96-5398-a2b9-8c5b34c29d01",
           *           "restarted_as": "cb4b6c49-37f0-5fd7-9330-2e1dfea1230c",
           *           "restart_count": 1,
           *           "start_after": 1,
           *           "network": {
           *             "mode": "bridge",
           *             "ports": {
           *               "game": {
           *                 "protocol": "udp",
           *                 "internal_port": 7777,
           *                 "public_hostname": "play.example.com",
           *                 "public_port": 26001,
           *                 "port_range": {
           *                   "min": 26000,
           *                   "max": 26009
           *                 },
           *                 "routing": {
           *                   "game_guard": {},
           *                   "host": {}
           *                 }
           *               }
           *             }
           *           },
           *           "resources": {
           *             "cpu": 500,
           *             "memory": 256
           *           },
           *           "runtime": {
           *             "build": "0056eb6e-05df-5b19-a07d-e925de51a0b7",
           *             "arguments": [
           *               "--map=beach"
           *             ],
           *             "environment": {
           *               "GAME_MODE": "value"
           *             }
           *           }
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListServersResponse'];
        };
      };
    };
  };
  createServer: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "datacenter": "625dc90c-b42b-5afe-8b2e-d4d0d22117ce",
         *       "tags": {
         *         "map": "beach"
         *       },
         *       "runtime": {
         *         "build": "0056eb6e-05df-5b19-a07d-e925de51a0b7"
         *       },
         *       "network": {
         *         "ports": {
         *           "game": {
         *             "protocol": "udp"
         *           }
         *         }
         *       },
         *       "resources": {
         *         "cpu": 500,
         *         "memory": 256
         *       }
         *     }
         */
        'application/json': components['schemas']['CreateServerRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "server": {
           *         "id": "df8cf32f-7b62-5b74-b5e6-cb8fdbfeada6",
           *         "environment": "82505923-bb04-5c13-b30f-b9e8926a04bf",
           *         "datacenter": "625dc90c-b42b-5afe-8b2e-d4d0d22117ce",
           *         "created_at": 1767225600000,
           *         "started_at": 1767225601000,
           *         "destroyed_at": 1767229200000,
           *         "tags": {
           *           "map": "beach"
           *         },
           *         "lifecycle": {
           *           "kill_timeout": 30000,
           *           "restart": "on_crash",
           *           "restarts_max": 1
           *         },
           *         "restart_of": "a62f4d13-7c96-5398-a2b9-8c5b34c29d01",
           *         "restarted_as": "cb4b6c49-37f0-5fd7-9330-2e1dfea1230c",
           *         "restart_count": 1,
           *         "start_after": 1,
           *         "network": {
           *           "mode": "bridge",
           *           "ports": {
           *             "game": {
           *               "protocol": "udp",
           *               "internal_port": 7777,
           *               "public_hostname": "play.example.com",
           *               "public_port": 26001,
           *               "port_range": {
           *                 "min": 26000,
           *                 "max": 26009
           *               },
           *               "routing": {
           *                 "game_guard": {},
           *                 "host": {}
           *               }
           *             }
           *           }
           *         },
           *         "resources": {
           *           "cpu": 500,
           *           "memory": 256
           *         },
           *         "runtime": {
           *           "build": "0056eb6e-05df-5b19-a07d-e925de51a0b7",
           *           "arguments": [
           *             "--map=beach"
           *           ],
           *           "environment": {
           *             "GAME_MODE": "value"
           *           }
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['CreateServerResponse'];
        };
      };
    };
  };
  getServer: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 111ac65c-204e-5e42-b177-53321c0a1334 */
        server_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "server": {
           *         "id": "df8cf32f-7b62-5b74-b5e6-cb8fdbfeada6",
           *         "environment": "82505923-bb04-5c13-b30f-b9e8926a04bf",
           *         "datacenter": "625dc90c-b42b-5afe-8b2e-d4d0d22117ce",
           *         "created_at": 1767225600000,
           *         "started_at": 1767225601000,
           *         "destroyed_at": 1767229200000,
           *         "tags": {
           *           "map": "beach"
           *         },
           *         "lifecycle": {
           *           "kill_timeout": 30000,
           *           "restart": "on_crash",
           *           "restarts_max": 1
           *         },
           *         "restart_of": "a62f4d13-7c96-5398-a2b9-8c5b34c29d01",
           *         "restarted_as": "cb4b6c49-37f0-5fd7-9330-2e1dfea1230c",
           *         "restart_count": 1,
           *         "start_after": 1,
           *         "network": {
           *           "mode": "bridge",
           *           "ports": {
           *             "game": {
           *               "protocol": "udp",
           *               "internal_port": 7777,
           *               "public_hostname": "play.example.com",
           *               "public_port": 26001,
           *               "port_range": {
           *                 "min": 26000,
           *                 "max": 26009
           *               },
           *               "routing": {
           *                 "game_guard": {},
           *                 "host": {}
           *               }
           *             }
           *           }
           *         },
           *         "resources": {
           *           "cpu": 500,
           *           "memory": 256
           *         },
           *         "runtime": {
           *           "build": "0056eb6e-05df-5b19-a07d-e925de51a0b7",
           *           "arguments": [
           *             "--map=beach"
           *           ],
           *           "environment": {
           *             "GAME_MODE": "value"
           *           }
           *         }
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetServerResponse'];
        };
      };
    };
  };
  destroyServer: {
    parameters: {
      query?: {
        /** @example 1000 */
        override_kill_timeout?: number;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 111ac65c-204e-5e42-b177-53321c0a1334 */
        server_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['DestroyServerRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['DestroyServerResponse'];
        };
      };
    };
  };
  getServerEnd: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 111ac65c-204e-5e42-b177-53321c0a1334 */
        server_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "end": {
           *         "has_crashed": true,
           *         "summary": "text",
           *         "exit_code": 0,
           *         "exit_signal": "text",
           *         "last_lines": [
           *           {
           *             "stream": "std_out",
           *             "ts": "2026-01-01T12:00:00.000Z",
           *             "text": "ready"
           *           }
           *         ]
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetServerEndResponse'];
        };
      };
    };
  };
  getServerUsage: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 111ac65c-204e-5e42-b177-53321c0a1334 */
        server_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "resources": {
           *         "cpu": 500,
           *         "memory": 256
           *       },
           *       "samples": [
           *         {
           *           "ts": "2026-01-01T12:00:00.000Z",
           *           "cpu": 500,
           *           "memory": 256,
           *           "received_bytes": 1,
           *           "sent_bytes": 1
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetServerUsageResponse'];
        };
      };
    };
  };
  getServerLogLines: {
    parameters: {
      query: {
        /** @example std_out */
        stream: components['schemas']['LogStream'];
        /** @example 2026-01-01T00:00:00.000Z */
        query_start_ts?: string;
        /** @example 1 */
        first_line?: number;
        /** @example ready */
        search_text?: string;
        /** @example true */
        search_case_sensitive?: boolean;
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 111ac65c-204e-5e42-b177-53321c0a1334 */
        server_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lines": [
           *         {
           *           "number": 1,
           *           "ts": "2026-01-01T12:00:00.000Z",
           *           "text": "ready"
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetServerLogLinesResponse'];
        };
      };
    };
  };
  searchServerLog: {
    parameters: {
      query: {
        /** @example std_out */
        stream: components['schemas']['LogStream'];
        /** @example ready */
        search_text: string;
        /** @example true */
        search_case_sensitive?: boolean;
        /** @example 1 */
        before_line?: number;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 111ac65c-204e-5e42-b177-53321c0a1334 */
        server_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "lines": [
           *         {
           *           "number": 1,
           *           "ts": "2026-01-01T12:00:00.000Z",
           *           "text": "ready"
           *         }
           *       ],
           *       "from_line": 1,
           *       "end_line": 1
           *     }
           */
          'application/json': components['schemas']['SearchServerLogResponse'];
        };
      };
    };
  };
  listMachines: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "machines": [
           *         {
           *           "machine_id": "53d34790-6855-5dd0-a0a6-fa23d29c84aa",
           *           "datacenter_id": "70376364-70ec-5aea-976f-f99665182863",
           *           "host": "play.example.com:26001",
           *           "state": "up",
           *           "since_ts": "2026-01-01T12:00:00.000Z",
           *           "last_beat_ts": "2026-01-01T12:00:00.000Z",
           *           "servers": 1,
           *           "lobbies": 1,
           *           "players": 1,
           *           "drain": {
           *             "since_ts": "2026-01-01T12:00:00.000Z",
           *             "deadline_ts": "2026-01-01T12:00:00.000Z",
           *             "is_complete": true
           *           }
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['ListMachinesResponse'];
        };
      };
    };
  };
  setMachineDrain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example 53d34790-6855-5dd0-a0a6-fa23d29c84aa */
        machine_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "deadline_ms": 1
         *     }
         */
        'application/json': components['schemas']['SetMachineDrainRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "machine": {
           *         "machine_id": "53d34790-6855-5dd0-a0a6-fa23d29c84aa",
           *         "datacenter_id": "70376364-70ec-5aea-976f-f99665182863",
           *         "host": "play.example.com:26001",
           *         "state": "up",
           *         "since_ts": "2026-01-01T12:00:00.000Z",
           *         "last_beat_ts": "2026-01-01T12:00:00.000Z",
           *         "servers": 1,
           *         "lobbies": 1,
           *         "players": 1,
           *         "drain": {
           *           "since_ts": "2026-01-01T12:00:00.000Z",
           *           "deadline_ts": "2026-01-01T12:00:00.000Z",
           *           "is_complete": true
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['SetMachineDrainResponse'];
        };
      };
    };
  };
  cancelMachineDrain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example 53d34790-6855-5dd0-a0a6-fa23d29c84aa */
        machine_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CancelMachineDrainRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "machine": {
           *         "machine_id": "53d34790-6855-5dd0-a0a6-fa23d29c84aa",
           *         "datacenter_id": "70376364-70ec-5aea-976f-f99665182863",
           *         "host": "play.example.com:26001",
           *         "state": "up",
           *         "since_ts": "2026-01-01T12:00:00.000Z",
           *         "last_beat_ts": "2026-01-01T12:00:00.000Z",
           *         "servers": 1,
           *         "lobbies": 1,
           *         "players": 1,
           *         "drain": {
           *           "since_ts": "2026-01-01T12:00:00.000Z",
           *           "deadline_ts": "2026-01-01T12:00:00.000Z",
           *           "is_complete": true
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['CancelMachineDrainResponse'];
        };
      };
    };
  };
  getBootstrap: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "cluster": "oss",
           *       "access": "private",
           *       "domains": {
           *         "cdn": "sites.example.com",
           *         "job": "text",
           *         "main": "play.example.com"
           *       },
           *       "origins": {
           *         "hub": "https://play.example.com"
           *       },
           *       "captcha": {
           *         "turnstile": {
           *           "site_key": "10000000-ffff-ffff-ffff-000000000001"
           *         }
           *       },
           *       "login_methods": {
           *         "email": true,
           *         "access_token": true
           *       },
           *       "deploy_hash": "0.1.0"
           *     }
           */
          'application/json': components['schemas']['GetBootstrapResponse'];
        };
      };
    };
  };
  createHubLink: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CreateHubLinkRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "url": "https://play.example.com/download?signature=…",
           *       "expire_ts": "2026-01-01T12:00:00.000Z"
           *     }
           */
          'application/json': components['schemas']['CreateHubLinkResponse'];
        };
      };
    };
  };
  createHubSession: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "code": "ABCD2345"
         *     }
         */
        'application/json': components['schemas']['CreateHubSessionRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['CreateHubSessionResponse'];
        };
      };
    };
  };
  revokeHubSession: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['RevokeHubSessionRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['RevokeHubSessionResponse'];
        };
      };
    };
  };
  createHubToken: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CreateHubTokenRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "token": "public_prod.eyJ0eXAiOiJKV1Qi…",
           *       "expire_ts": "2026-01-01T12:00:00.000Z"
           *     }
           */
          'application/json': components['schemas']['CreateHubTokenResponse'];
        };
      };
    };
  };
  listGameChanges: {
    parameters: {
      query?: {
        /** @example b2fba692-0fb7-508b-8008-073bc94544cf */
        identity_id?: string;
        /** @example 664e8b7d-d260-56b9-ae11-308f112d4715 */
        before?: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "entries": [
           *         {
           *           "entry_id": "0809df48-1508-59a6-9b8f-d3f573e7e31d",
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "operation": "text",
           *           "caller": {
           *             "kind": "identity",
           *             "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf",
           *             "display_name": "Crab Arena",
           *             "token_issued_ts": "2026-01-01T12:00:00.000Z"
           *           },
           *           "address": "text",
           *           "user_agent": "text",
           *           "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80",
           *           "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *           "group_id": "317b7ea5-8cba-5374-9d7e-fd5fbe831559",
           *           "details": {
           *             "name": "text"
           *           },
           *           "outcome": "begun",
           *           "code": "ABCD2345"
           *         }
           *       ],
           *       "next": "text"
           *     }
           */
          'application/json': components['schemas']['ListGameChangesResponse'];
        };
      };
    };
  };
  listChanges: {
    parameters: {
      query?: {
        /** @example b2fba692-0fb7-508b-8008-073bc94544cf */
        identity_id?: string;
        /** @example 664e8b7d-d260-56b9-ae11-308f112d4715 */
        before?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "entries": [
           *         {
           *           "entry_id": "0809df48-1508-59a6-9b8f-d3f573e7e31d",
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "operation": "text",
           *           "caller": {
           *             "kind": "identity",
           *             "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf",
           *             "display_name": "Crab Arena",
           *             "token_issued_ts": "2026-01-01T12:00:00.000Z"
           *           },
           *           "address": "text",
           *           "user_agent": "text",
           *           "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80",
           *           "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *           "group_id": "317b7ea5-8cba-5374-9d7e-fd5fbe831559",
           *           "details": {
           *             "name": "text"
           *           },
           *           "outcome": "begun",
           *           "code": "ABCD2345"
           *         }
           *       ],
           *       "next": "text"
           *     }
           */
          'application/json': components['schemas']['ListChangesResponse'];
        };
      };
    };
  };
  listShares: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "shares": [
           *         {
           *           "share_id": "51eb1258-50c5-5824-962c-d2641a47cb53",
           *           "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80",
           *           "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *           "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
           *           "expire_ts": "2026-01-01T12:00:00.000Z",
           *           "display_name": "Crab Arena",
           *           "create_ts": "2026-01-01T12:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['ListSharesResponse'];
        };
      };
    };
  };
  createShare: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "lobby_id": "91bb0356-1c39-505d-8aaf-4feb6858bb1c",
         *       "lifetime_ms": 60000,
         *       "display_name": "Crab Arena"
         *     }
         */
        'application/json': components['schemas']['CreateShareRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "share_id": "51eb1258-50c5-5824-962c-d2641a47cb53",
           *       "url": "https://play.example.com/download?signature=…",
           *       "token": "public_prod.eyJ0eXAiOiJKV1Qi…",
           *       "expire_ts": "2026-01-01T12:00:00.000Z"
           *     }
           */
          'application/json': components['schemas']['CreateShareResponse'];
        };
      };
    };
  };
  revokeShare: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
        /** @example 51eb1258-50c5-5824-962c-d2641a47cb53 */
        share_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['RevokeShareRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['RevokeShareResponse'];
        };
      };
    };
  };
  listGames: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "games": [
           *         {
           *           "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80",
           *           "name_id": "crab-arena",
           *           "display_name": "Crab Arena",
           *           "logo_url": "https://play.example.com/media/game-logo/6f1c…",
           *           "banner_url": "https://play.example.com/media/game-banner/6f1c…",
           *           "url": "https://crab-arena.sites.example.com",
           *           "developer": {
           *             "group_id": "317b7ea5-8cba-5374-9d7e-fd5fbe831559",
           *             "display_name": "Crab Arena",
           *             "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *             "external": {
           *               "profile": "https://play.example.com/hub/~groups/6f1c…"
           *             },
           *             "is_developer": true
           *           },
           *           "total_player_count": 7
           *         }
           *       ],
           *       "groups": [
           *         {
           *           "group_id": "317b7ea5-8cba-5374-9d7e-fd5fbe831559",
           *           "display_name": "Crab Arena",
           *           "bio": "We make games about crabs.",
           *           "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *           "external": {
           *             "profile": "https://play.example.com/hub/~groups/6f1c…"
           *           },
           *           "is_developer": true,
           *           "is_current_identity_member": true,
           *           "member_count": 3,
           *           "owner_identity_id": "9dcd6daf-8652-5090-b2b8-b7a5f49868b5",
           *           "publicity": "open"
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListGamesResponse'];
        };
      };
    };
  };
  createGame: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "display_name": "Crab Arena",
         *       "developer_group_id": "42c47e48-6663-56ba-b5a5-9e83c7343f4b"
         *     }
         */
        'application/json': components['schemas']['CreateGameRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80"
           *     }
           */
          'application/json': components['schemas']['CreateGameResponse'];
        };
      };
    };
  };
  getGame: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "game": {
           *         "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80",
           *         "create_ts": "2026-01-01T12:00:00.000Z",
           *         "name_id": "crab-arena",
           *         "display_name": "Crab Arena",
           *         "developer_group_id": "42c47e48-6663-56ba-b5a5-9e83c7343f4b",
           *         "total_player_count": 7,
           *         "logo_url": "https://play.example.com/media/game-logo/6f1c…",
           *         "banner_url": "https://play.example.com/media/game-banner/6f1c…",
           *         "namespaces": [
           *           {
           *             "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *             "create_ts": "2026-01-01T12:00:00.000Z",
           *             "display_name": "Crab Arena",
           *             "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *             "name_id": "crab-arena"
           *           }
           *         ],
           *         "versions": [
           *           {
           *             "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *             "create_ts": "2026-01-01T12:00:00.000Z",
           *             "display_name": "Crab Arena"
           *           }
           *         ],
           *         "available_regions": [
           *           {
           *             "region_id": "a84d4c45-7ca9-5c10-a190-bfbafd8a84a4",
           *             "region_name_id": "frankfurt",
           *             "provider": "muster",
           *             "universal_region": "unknown",
           *             "provider_display_name": "Muster",
           *             "region_display_name": "Frankfurt"
           *           }
           *         ]
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetGameResponse'];
        };
      };
    };
  };
  createCloudToken: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CreateCloudTokenRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *     }
           */
          'application/json': components['schemas']['CreateCloudTokenResponse'];
        };
      };
    };
  };
  revokeTokens: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['RevokeTokensRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['RevokeTokensResponse'];
        };
      };
    };
  };
  inspectToken: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "agent": {
           *         "identity": {
           *           "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf"
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['InspectTokenResponse'];
        };
      };
    };
  };
  getNamespace: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "namespace": {
           *         "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *         "create_ts": "2026-01-01T12:00:00.000Z",
           *         "display_name": "Crab Arena",
           *         "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *         "name_id": "crab-arena",
           *         "config": {
           *           "cdn": {
           *             "enable_domain_public_auth": true,
           *             "domains": [
           *               {
           *                 "domain": "crabs.example.com",
           *                 "create_ts": "2026-01-01T12:00:00.000Z",
           *                 "verification_status": "active",
           *                 "verification_method": {
           *                   "http": {
           *                     "cname_record": "crab-arena.sites.example.com"
           *                   }
           *                 },
           *                 "verification_errors": [
           *                   "text"
           *                 ]
           *               }
           *             ],
           *             "auth_type": "none",
           *             "auth_user_list": [
           *               {
           *                 "user": "tester"
           *               }
           *             ]
           *           },
           *           "matchmaker": {
           *             "lobby_count_max": 100,
           *             "max_players_per_client": 8,
           *             "max_players_per_client_vpn": 8,
           *             "max_players_per_client_proxy": 8,
           *             "max_players_per_client_tor": 2,
           *             "max_players_per_client_hosting": 2
           *           },
           *           "kv": {},
           *           "identity": {}
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['GetNamespaceResponse'];
        };
      };
    };
  };
  setNamespaceVersion: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59"
         *     }
         */
        'application/json': components['schemas']['SetNamespaceVersionRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['SetNamespaceVersionResponse'];
        };
      };
    };
  };
  listNamespaceVersions: {
    parameters: {
      query?: {
        /** @example 2026-01-01T12:00:00.000Z */
        anchor?: string;
        /** @example 32 */
        limit?: number;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "versions": [
           *         {
           *           "namespace_id": "50de6678-ab18-5579-b16e-3a27aa88e4c5",
           *           "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *           "deploy_ts": "2026-01-01T12:00:00.000Z"
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['ListNamespaceVersionsResponse'];
        };
      };
    };
  };
  createPublicToken: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CreatePublicTokenRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *     }
           */
          'application/json': components['schemas']['CreatePublicTokenResponse'];
        };
      };
    };
  };
  createServiceToken: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CreateServiceTokenRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "token": "public_prod.eyJ0eXAiOiJKV1Qi…"
           *     }
           */
          'application/json': components['schemas']['CreateServiceTokenResponse'];
        };
      };
    };
  };
  setMatchmakerLimits: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "lobby_count_max": 100,
         *       "max_players": 16
         *     }
         */
        'application/json': components['schemas']['SetMatchmakerLimitsRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['SetMatchmakerLimitsResponse'];
        };
      };
    };
  };
  setDomainPublicAuth: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "enabled": true
         *     }
         */
        'application/json': components['schemas']['SetDomainPublicAuthRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['SetDomainPublicAuthResponse'];
        };
      };
    };
  };
  setCdnAuthType: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "auth_type": "none"
         *     }
         */
        'application/json': components['schemas']['SetCdnAuthTypeRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['SetCdnAuthTypeResponse'];
        };
      };
    };
  };
  setCdnAuthUser: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "user": "tester",
         *       "password": "$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"
         *     }
         */
        'application/json': components['schemas']['SetCdnAuthUserRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['SetCdnAuthUserResponse'];
        };
      };
    };
  };
  removeCdnAuthUser: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
        /** @example tester */
        user: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['RemoveCdnAuthUserRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['RemoveCdnAuthUserResponse'];
        };
      };
    };
  };
  addDomain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "domain": "crabs.example.com"
         *     }
         */
        'application/json': components['schemas']['AddDomainRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['AddDomainResponse'];
        };
      };
    };
  };
  removeDomain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 50de6678-ab18-5579-b16e-3a27aa88e4c5 */
        namespace_id: string;
        /** @example crabs.example.com */
        domain: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['RemoveDomainRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['RemoveDomainResponse'];
        };
      };
    };
  };
  createVersion: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "display_name": "Crab Arena",
         *       "config": {
         *         "cdn": {
         *           "site_id": "6a8f5d50-0e64-5b43-8bd4-2d3837910732",
         *           "routes": []
         *         },
         *         "matchmaker": {
         *           "game_modes": {
         *             "deathmatch": {
         *               "max_players": 16,
         *               "regions": {
         *                 "frankfurt": {}
         *               },
         *               "docker": {
         *                 "image_id": "4715264b-f710-5bc3-bd0c-60cd30cc2e79",
         *                 "network_mode": "host",
         *                 "ports": {
         *                   "game": {
         *                     "port": 7777,
         *                     "protocol": "udp"
         *                   }
         *                 }
         *               }
         *             }
         *           }
         *         }
         *       }
         *     }
         */
        'application/json': components['schemas']['CreateVersionRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59"
           *     }
           */
          'application/json': components['schemas']['CreateVersionResponse'];
        };
      };
    };
  };
  reserveVersionName: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['ReserveVersionNameRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "version_display_name": "text"
           *     }
           */
          'application/json': components['schemas']['ReserveVersionNameResponse'];
        };
      };
    };
  };
  getVersion: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59 */
        version_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "version": {
           *         "version_id": "6463b3dd-9aaf-51d0-a5dc-b9ac4089ce59",
           *         "create_ts": "2026-01-01T12:00:00.000Z",
           *         "display_name": "Crab Arena",
           *         "config": {
           *           "cdn": {
           *             "site_id": "6a8f5d50-0e64-5b43-8bd4-2d3837910732",
           *             "routes": []
           *           },
           *           "matchmaker": {
           *             "game_modes": {
           *               "deathmatch": {
           *                 "max_players": 16,
           *                 "regions": {
           *                   "frankfurt": {}
           *                 },
           *                 "docker": {
           *                   "image_id": "4715264b-f710-5bc3-bd0c-60cd30cc2e79",
           *                   "network_mode": "host",
           *                   "ports": {
           *                     "game": {
           *                       "port": 7777,
           *                       "protocol": "udp"
           *                     }
           *                   }
           *                 }
           *               }
           *             }
           *           }
           *         }
           *       }
           *     }
           */
          'application/json': components['schemas']['GetVersionResponse'];
        };
      };
    };
  };
  prepareBuild: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Crab Arena 1.2.0",
         *       "image_file": {
         *         "path": "build.tar.gz",
         *         "content_length": 1048576
         *       }
         *     }
         */
        'application/json': components['schemas']['PrepareBuildRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "build": "0056eb6e-05df-5b19-a07d-e925de51a0b7",
           *       "image_presigned_request": {
           *         "path": "build.tar.gz",
           *         "url": "https://play.example.com/download?signature=…",
           *         "byte_offset": 0,
           *         "content_length": 1048576
           *       },
           *       "image_presigned_requests": [
           *         {
           *           "path": "build.tar.gz",
           *           "url": "https://play.example.com/download?signature=…",
           *           "byte_offset": 0,
           *           "content_length": 1048576
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['PrepareBuildResponse'];
        };
      };
    };
  };
  completeBuild: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 237f12c5-0fa6-547d-a896-a80aa88acb0b */
        build_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CompleteBuildRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['CompleteBuildResponse'];
        };
      };
    };
  };
  patchBuildTags: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example 6e2a8f2d-816e-501b-9a00-693435fc058b */
        environment_id: string;
        /** @example 237f12c5-0fa6-547d-a896-a80aa88acb0b */
        build_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "tags": {
         *         "map": "beach"
         *       }
         *     }
         */
        'application/json': components['schemas']['PatchBuildTagsRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['PatchBuildTagsResponse'];
        };
      };
    };
  };
  listGameBuilds: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "builds": [
           *         {
           *           "build_id": "237f12c5-0fa6-547d-a896-a80aa88acb0b",
           *           "upload_id": "a9cc9ccb-b79b-5259-886e-4256f623283f",
           *           "display_name": "Crab Arena",
           *           "create_ts": "2026-01-01T12:00:00.000Z",
           *           "content_length": 1048576,
           *           "complete": true,
           *           "tags": {
           *             "map": "beach"
           *           }
           *         }
           *       ],
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['ListGameBuildsResponse'];
        };
      };
    };
  };
  createGameBuild: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "display_name": "Crab Arena",
         *       "image_file": {
         *         "path": "build.tar.gz",
         *         "content_length": 1048576
         *       }
         *     }
         */
        'application/json': components['schemas']['CreateGameBuildRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "build_id": "237f12c5-0fa6-547d-a896-a80aa88acb0b",
           *       "upload_id": "a9cc9ccb-b79b-5259-886e-4256f623283f",
           *       "image_presigned_request": {
           *         "path": "build.tar.gz",
           *         "url": "https://play.example.com/download?signature=…",
           *         "byte_offset": 0,
           *         "content_length": 1048576
           *       },
           *       "image_presigned_requests": [
           *         {
           *           "path": "build.tar.gz",
           *           "url": "https://play.example.com/download?signature=…",
           *           "byte_offset": 0,
           *           "content_length": 1048576
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['CreateGameBuildResponse'];
        };
      };
    };
  };
  listMissingUploads: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example fd0d16ad-6de8-5e8c-ac79-36fa1898fe80 */
        game_id: string;
        /** @example a9cc9ccb-b79b-5259-886e-4256f623283f */
        upload_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "presigned_requests": [
           *         {
           *           "path": "build.tar.gz",
           *           "url": "https://play.example.com/download?signature=…",
           *           "byte_offset": 0,
           *           "content_length": 1048576
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['ListMissingUploadsResponse'];
        };
      };
    };
  };
  completeUpload: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example a9cc9ccb-b79b-5259-886e-4256f623283f */
        upload_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['CompleteUploadRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['CompleteUploadResponse'];
        };
      };
    };
  };
  getGroupProfile: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example 317b7ea5-8cba-5374-9d7e-fd5fbe831559 */
        group_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "group": {
           *         "group_id": "317b7ea5-8cba-5374-9d7e-fd5fbe831559",
           *         "display_name": "Crab Arena",
           *         "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *         "external": {
           *           "profile": "https://play.example.com/hub/~groups/6f1c…"
           *         },
           *         "is_developer": true,
           *         "bio": "We make games about crabs.",
           *         "is_current_identity_member": true,
           *         "publicity": "open",
           *         "member_count": 3,
           *         "members": [
           *           {
           *             "identity": {
           *               "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf",
           *               "display_name": "Crab Arena",
           *               "account_number": 1234,
           *               "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *               "is_registered": true,
           *               "external": {
           *                 "profile": "https://play.example.com/hub/~groups/6f1c…",
           *                 "settings": "text"
           *               }
           *             }
           *           }
           *         ],
           *         "join_requests": [
           *           {
           *             "identity": {
           *               "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf",
           *               "display_name": "Crab Arena",
           *               "account_number": 1234,
           *               "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *               "is_registered": true,
           *               "external": {
           *                 "profile": "https://play.example.com/hub/~groups/6f1c…",
           *                 "settings": "text"
           *               }
           *             },
           *             "ts": "2026-01-01T12:00:00.000Z"
           *           }
           *         ],
           *         "is_current_identity_requesting_join": true,
           *         "owner_identity_id": "9dcd6daf-8652-5090-b2b8-b7a5f49868b5"
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetGroupProfileResponse'];
        };
      };
    };
  };
  updateGroupProfile: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example 317b7ea5-8cba-5374-9d7e-fd5fbe831559 */
        group_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "display_name": "Crab Arena",
         *       "bio": "We make games about crabs.",
         *       "publicity": "open"
         *     }
         */
        'application/json': components['schemas']['UpdateGroupProfileRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['UpdateGroupProfileResponse'];
        };
      };
    };
  };
  kickMember: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example 317b7ea5-8cba-5374-9d7e-fd5fbe831559 */
        group_id: string;
        /** @example b2fba692-0fb7-508b-8008-073bc94544cf */
        identity_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['KickMemberRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['KickMemberResponse'];
        };
      };
    };
  };
  leaveGroup: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example 317b7ea5-8cba-5374-9d7e-fd5fbe831559 */
        group_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['LeaveGroupRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['LeaveGroupResponse'];
        };
      };
    };
  };
  resolveJoinRequest: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example 317b7ea5-8cba-5374-9d7e-fd5fbe831559 */
        group_id: string;
        /** @example b2fba692-0fb7-508b-8008-073bc94544cf */
        identity_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "resolution": true
         *     }
         */
        'application/json': components['schemas']['ResolveJoinRequestRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['ResolveJoinRequestResponse'];
        };
      };
    };
  };
  createInvite: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example 317b7ea5-8cba-5374-9d7e-fd5fbe831559 */
        group_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "ttl": 86400000,
         *       "use_count": 10
         *     }
         */
        'application/json': components['schemas']['CreateInviteRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "code": "ABCD2345"
           *     }
           */
          'application/json': components['schemas']['CreateInviteResponse'];
        };
      };
    };
  };
  getInvite: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example ABCD2345 */
        group_invite_code: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "group": {
           *         "group_id": "317b7ea5-8cba-5374-9d7e-fd5fbe831559",
           *         "display_name": "Crab Arena",
           *         "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *         "external": {
           *           "profile": "https://play.example.com/hub/~groups/6f1c…"
           *         },
           *         "is_developer": true
           *       }
           *     }
           */
          'application/json': components['schemas']['GetInviteResponse'];
        };
      };
    };
  };
  consumeInvite: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example ABCD2345 */
        group_invite_code: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': components['schemas']['ConsumeInviteRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "group_id": "317b7ea5-8cba-5374-9d7e-fd5fbe831559"
           *     }
           */
          'application/json': components['schemas']['ConsumeInviteResponse'];
        };
      };
    };
  };
  setUpIdentity: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "existing_identity_token": "usr.eyJ0eXAiOiJKV1Qi…"
         *     }
         */
        'application/json': components['schemas']['SetUpIdentityRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "identity_token": "usr.eyJ0eXAiOiJKV1Qi…",
           *       "identity_token_expire_ts": "2026-01-01T12:00:00.000Z",
           *       "identity": {
           *         "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf",
           *         "display_name": "Crab Arena",
           *         "account_number": 1234,
           *         "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *         "is_registered": true,
           *         "external": {
           *           "profile": "https://play.example.com/hub/~groups/6f1c…",
           *           "settings": "text"
           *         },
           *         "following": true,
           *         "is_following_me": true,
           *         "is_mutual_following": true,
           *         "is_admin": true,
           *         "follower_count": 1,
           *         "following_count": 1,
           *         "join_ts": "2026-01-01T12:00:00.000Z",
           *         "bio": "We make games about crabs.",
           *         "linked_accounts": [
           *           {}
           *         ],
           *         "groups": [
           *           {
           *             "group": {}
           *           }
           *         ],
           *         "games": [
           *           {}
           *         ],
           *         "awaiting_deletion": true
           *       },
           *       "game_id": "fd0d16ad-6de8-5e8c-ac79-36fa1898fe80"
           *     }
           */
          'application/json': components['schemas']['SetUpIdentityResponse'];
        };
      };
    };
  };
  getSelfProfile: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "identity": {
           *         "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf",
           *         "display_name": "Crab Arena",
           *         "account_number": 1234,
           *         "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *         "is_registered": true,
           *         "external": {
           *           "profile": "https://play.example.com/hub/~groups/6f1c…",
           *           "settings": "text"
           *         },
           *         "following": true,
           *         "is_following_me": true,
           *         "is_mutual_following": true,
           *         "is_admin": true,
           *         "follower_count": 1,
           *         "following_count": 1,
           *         "join_ts": "2026-01-01T12:00:00.000Z",
           *         "bio": "We make games about crabs.",
           *         "linked_accounts": [
           *           {}
           *         ],
           *         "groups": [
           *           {
           *             "group": {}
           *           }
           *         ],
           *         "games": [
           *           {}
           *         ],
           *         "awaiting_deletion": true
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetSelfProfileResponse'];
        };
      };
    };
  };
  updateSelfProfile: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "display_name": "Crab Arena",
         *       "account_number": 1234,
         *       "bio": "We make games about crabs."
         *     }
         */
        'application/json': components['schemas']['UpdateSelfProfileRequest'];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /** @example {} */
          'application/json': components['schemas']['UpdateSelfProfileResponse'];
        };
      };
    };
  };
  getIdentityProfile: {
    parameters: {
      query?: {
        /** @example 9f86d081.42 */
        watch_index?: string;
      };
      header?: never;
      path: {
        /** @example b2fba692-0fb7-508b-8008-073bc94544cf */
        identity_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "identity": {
           *         "identity_id": "b2fba692-0fb7-508b-8008-073bc94544cf",
           *         "display_name": "Crab Arena",
           *         "account_number": 1234,
           *         "avatar_url": "https://play.example.com/media/avatar/6f1c…",
           *         "is_registered": true,
           *         "external": {
           *           "profile": "https://play.example.com/hub/~groups/6f1c…",
           *           "settings": "text"
           *         },
           *         "following": true,
           *         "is_following_me": true,
           *         "is_mutual_following": true,
           *         "is_admin": true,
           *         "follower_count": 1,
           *         "following_count": 1,
           *         "join_ts": "2026-01-01T12:00:00.000Z",
           *         "bio": "We make games about crabs.",
           *         "linked_accounts": [
           *           {}
           *         ],
           *         "groups": [
           *           {
           *             "group": {}
           *           }
           *         ],
           *         "games": [
           *           {}
           *         ],
           *         "awaiting_deletion": true
           *       },
           *       "watch": {
           *         "index": "9f86d081.42"
           *       }
           *     }
           */
          'application/json': components['schemas']['GetIdentityProfileResponse'];
        };
      };
    };
  };
  checkReady: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          /**
           * @example {
           *       "status": "text",
           *       "warnings": [
           *         {
           *           "code": "SERVICE_STARTING",
           *           "message": "text",
           *           "advice": "text"
           *         }
           *       ],
           *       "isolation": {
           *         "level": "text",
           *         "missing": [
           *           "text"
           *         ]
           *       },
           *       "refused": [
           *         {
           *           "limit": "text",
           *           "count": 32
           *         }
           *       ]
           *     }
           */
          'application/json': components['schemas']['CheckReadyResponse'];
        };
      };
    };
  };
}
