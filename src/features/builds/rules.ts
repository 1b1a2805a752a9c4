import { ServiceError } from '../../platform/errors.ts';
import { GIB } from '../../platform/units.ts';
import { displayNameProblem, LONG_DISPLAY_NAME_BYTES_MAX, refuseProblems } from '../names.ts';
import type { BuildKind, StoredKind } from './tables.ts';
import type { PrepareBuild } from './wire.ts';

/** The largest file of each kind. JavaScript has more than the 10 MB of the reference API, which leave no room for assets. */
const CONTENT_LENGTH_MAX: Record<StoredKind, number> = {
  archive: 8 * GIB,
  contained_archive: 8 * GIB,
  javascript: GIB / 16,
  docker_image: 8 * GIB,
  oci_bundle: 8 * GIB,
};

/** Scripts: the runtime infers the language from the extension. */
const SCRIPT_NAME = /\.(js|mjs|cjs|ts|mts|cts)$/;

const ARCHIVE_NAME = /\.(tar(\.\w+)?|tgz|tzst)$/;

/** The names under which clients of Rivet upload containers. */
const IMAGE_NAME = /(^|\/)image\.tar(\.\w+)?$/;
const OCI_BUNDLE_NAME = /(^|\/)oci-bundle\.tar(\.\w+)?$/;

/** The kinds of builds that a service can run, and why it cannot run the others. */
export interface AvailableKinds {
  kinds: readonly BuildKind[];
  why_missing?: string | undefined;
}

/** What is needed to run builds. */
export interface Available extends AvailableKinds {
  /** Whether there is an image on which archives run in containers. */
  has_base_image: boolean;
}

/** Returns the kind by which a runtime runs a build. A contained archive is unpacked as a bundle. */
export const runtimeKindOf = (kind: StoredKind): BuildKind => (kind === 'contained_archive' ? 'oci_bundle' : kind);

/** Returns the kind of a build to upload, if it is available. Throws an error that says what is wrong with the build. */
export function checkBuild(build: PrepareBuild, available: Available): StoredKind {
  const problem = displayNameProblem(build.name, LONG_DISPLAY_NAME_BYTES_MAX);
  refuseProblems(problem ? [{ path: ['display-name', problem] }] : []);
  const kind = build.kind ?? inferKind(build);
  if (!kind) {
    const error =
      'its kind cannot be inferred from its file name. Send a "kind": javascript for one .js or .ts file, archive for a tar with a command, docker_image or oci_bundle for a container';
    throw new ServiceError('BUILDS_BUILD_INVALID', { error });
  }
  if (build.isolation !== undefined && kind !== 'archive') {
    const error = `only an archive has an isolation, and this is a build of kind ${kind}; leave isolation out`;
    throw new ServiceError('BUILDS_BUILD_INVALID', { error });
  }
  if (build.command !== undefined && kind === 'javascript') {
    const error = 'a javascript build has no command, because its script is run; give the version arguments instead';
    throw new ServiceError('BUILDS_BUILD_INVALID', { error });
  }
  const stored = build.isolation === 'container' ? 'contained_archive' : kind;
  refuseUnavailableKind(stored, available);
  const max_content_length = CONTENT_LENGTH_MAX[kind];
  if (build.image_file.content_length > max_content_length)
    throw new ServiceError('UPLOAD_TOO_LARGE', { max_content_length });
  if (kind === 'archive' && !build.command) {
    throw new ServiceError('BUILDS_BUILD_INVALID', { error: 'an archive needs a command, for example ["./server"]' });
  }
  if (
    kind === 'archive' &&
    programInside(build.command ?? [])
      ?.split('/')
      .includes('..')
  ) {
    throw new ServiceError('BUILDS_BUILD_INVALID', {
      error: 'its command is outside the archive; start a program inside it',
    });
  }
  if (kind === 'javascript' && !SCRIPT_NAME.test(build.image_file.path)) {
    throw new ServiceError('BUILDS_BUILD_INVALID', {
      error: 'the file name of a javascript build must end in .js, .mjs, .cjs, .ts, .mts or .cts',
    });
  }
  return stored;
}

/** Throws an error if no runtime can run a kind of builds. */
export function refuseUnavailableKind(kind: StoredKind, { kinds, why_missing, has_base_image }: Available): void {
  const is_contained = kind === 'contained_archive';
  const lacks_image = is_contained && kinds.includes('oci_bundle') && !has_base_image;
  if (kinds.includes(runtimeKindOf(kind)) && !lacks_image) return;
  const reason = lacks_image
    ? 'its operator has set no MUSTER_CONTAINER_BASE, the image on which archives run in containers; leave out the isolation'
    : (why_missing ?? 'it has no runtime for this kind');
  throw new ServiceError('BUILDS_KIND_NOT_AVAILABLE', {
    kind: is_contained ? 'archive in a container' : kind,
    reason,
    kinds: kinds.join(', '),
  });
}

/**
 * Returns the path of a command's program inside the archive; undefined for a program of the machine. As in a shell,
 * only a name without a slash is searched on the machine.
 */
export function programInside([program = '']: string[]): string | undefined {
  return program.includes('/') && !program.startsWith('/') ? program : undefined;
}

/**
 * Infers the kind of a build that names none. Clients of Rivet upload containers without a kind, with an image tag, as
 * `image.tar` or `image.tar.lz4`. An archive always has a command.
 */
function inferKind({ image_file, image_tag, command }: PrepareBuild): BuildKind | undefined {
  const { path } = image_file;
  if (SCRIPT_NAME.test(path)) return 'javascript';
  if (!command && OCI_BUNDLE_NAME.test(path)) return 'oci_bundle';
  if (!command && (image_tag !== undefined || IMAGE_NAME.test(path))) return 'docker_image';
  return ARCHIVE_NAME.test(path) ? 'archive' : undefined;
}

/** Returns the name under which a script is stored on disk. Only its extension comes from the uploaded file. */
export function scriptNameOf(path: string): string {
  return `main${SCRIPT_NAME.exec(path)?.[0] ?? '.js'}`;
}
