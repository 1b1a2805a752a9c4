import manifest from '../../package.json' with { type: 'json' };

/** Set by the build (.ci/build.ts). */
declare const MUSTER_BUILD_VERSION: string;

/** The release of the source. */
export const RELEASE = manifest.version;

/** The running version: a release, or a later build with its commit. When run from source, it is the release. */
export const VERSION = typeof MUSTER_BUILD_VERSION === 'undefined' ? RELEASE : MUSTER_BUILD_VERSION;
