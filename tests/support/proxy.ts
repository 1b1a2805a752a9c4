/** The secret of a test's proxy, which is the test itself: services that trust its address have it in their settings. */
export const PROXY_SECRET = 'the secret of a proxy in tests'.replaceAll(' ', '-');
