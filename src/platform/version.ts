import manifest from '../../package.json' with { type: 'json' };

/** Set by the build (.ci/build.ts). */
declare const MUSTER_BUILD_VERSION: string;

/** The release that the source belongs to. */
export const RELEASE = manifest.version;

/** What runs: a release, or a build after one with its commit. The source itself has the version of its release. */
export const VERSION = typeof MUSTER_BUILD_VERSION === 'undefined' ? RELEASE : MUSTER_BUILD_VERSION;
