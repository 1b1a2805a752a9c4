/** The secret by which a test is a trusted proxy of services that have it in their settings. */
export const PROXY_SECRET = 'the secret of a proxy in tests'.replaceAll(' ', '-');
