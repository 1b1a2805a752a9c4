import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Text, Timestamp, U64, Uuid } from '../../platform/http/shapes.ts';
import { TAG_NAME_BYTES_MAX, TAGS_MAX, TagsPatch } from '../tags.ts';
import { PrepareFile, PresignedRequest } from '../uploads/wire.ts';
import { BUILD_KINDS, type BuildRow } from './tables.ts';

const Kind = oneOf('BuildKind', BUILD_KINDS, {
  description:
    'archive: a tar (plain, gzip, lz4 or zstd) and a command. javascript: one .js or .ts file. docker_image: what docker save writes, and oci_bundle: a tar of config.json and rootfs/; both need a container runtime. If you leave it out: a .js or .ts file is javascript. A file without a command is oci_bundle if its name is like oci-bundle.tar, and docker_image if it has an image_tag or its name is like image.tar.lz4. Any other tar is an archive.',
});

/** The smallest part that object storages take, and the largest, which is the default. */
const PART_BYTES = { min: 5 * 1024 ** 2, max: 100 * 1024 ** 2 };

const PrepareMembers = {
  image_tag: Type.Optional(Type.String({ maxLength: 256 })),
  image_file: PrepareFile,
  multipart_upload: Type.Optional(Type.Boolean({ default: false })),
  part_length: Type.Optional(
    Type.Integer({
      minimum: PART_BYTES.min,
      maximum: PART_BYTES.max,
      description:
        'Bytes of each part but the last of a multipart upload, 100 MiB by default. An interrupted upload sends only whole parts again.',
    }),
  ),
  kind: Type.Optional(Kind),
  compression: Type.Optional(
    oneOf('Compression', ['none', 'lz4', 'gzip', 'zstd'], {
      description: 'Of no effect: the compression of a file is detected from its first bytes.',
    }),
  ),
  command: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
      minItems: 1,
      maxItems: 64,
      description:
        'For an archive: its program and the first arguments, for example ["./server", "--fast"]. For an image or a bundle, it replaces its own program and arguments. A script has none.',
    }),
  ),
  isolation: Type.Optional(
    oneOf('BuildIsolation', ['process', 'container'], {
      description:
        "Of an archive: whether it runs as a process of the machine (the default), or in a container on the operator's base image, in the folder /server.",
    }),
  ),
};

/** A build of an environment. */
export const PrepareBuildBody = Type.Object({
  name: Text,
  ...PrepareMembers,
  prewarm_datacenters: Type.Optional(
    Type.Array(Uuid, {
      maxItems: 100,
      description: 'Of no effect: a machine unpacks a build when it first needs it.',
    }),
  ),
});
export const PrepareBuildAnswer = Type.Object({
  build: Uuid,
  image_presigned_request: Type.Optional(PresignedRequest),
  image_presigned_requests: Type.Optional(Type.Array(PresignedRequest)),
});

/** A build of a game. */
export const CreateGameBuildBody = Type.Object({ display_name: Text, ...PrepareMembers });
export const CreateGameBuildAnswer = Type.Object({
  build_id: Uuid,
  upload_id: Uuid,
  image_presigned_request: Type.Optional(PresignedRequest),
  image_presigned_requests: Type.Optional(Type.Array(PresignedRequest)),
});

export type PrepareBuild = Omit<Static<typeof PrepareBuildBody>, 'prewarm_datacenters'>;

export const PatchTagsBody = Type.Object({
  tags: TagsPatch,
  exclusive_tags: Type.Optional(Type.Array(Type.String({ maxLength: TAG_NAME_BYTES_MAX }), { maxItems: TAGS_MAX })),
});

const Build = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    created_at: Timestamp,
    content_length: U64,
    tags: Type.Record(Type.String(), Type.String()),
  },
  { title: 'Build' },
);
export const BuildAnswer = Type.Object({ build: Build });
export const BuildsAnswer = Type.Object({ builds: Type.Array(Build) });

const BuildSummary = Type.Object(
  {
    build_id: Uuid,
    upload_id: Uuid,
    display_name: Type.String(),
    create_ts: Timestamp,
    content_length: U64,
    complete: Type.Boolean(),
    tags: Type.Record(Type.String(), Type.String()),
  },
  { title: 'BuildSummary' },
);
export const GameBuildsAnswer = Type.Object({ builds: Type.Array(BuildSummary) });

export const BuildFileAnswer = Type.Object({
  url: Type.String({ description: 'The address of the file; valid for an hour, without a token.' }),
  content_length: U64,
  sha256: Type.Optional(
    Type.String({ description: 'The digest of the file in hexadecimal. Missing for a build of an earlier release.' }),
  ),
});

export function toBuildFile({ content_length, sha256 }: BuildRow, url: string): Static<typeof BuildFileAnswer> {
  return { url, content_length, ...(sha256 !== null && { sha256 }) };
}

/** Returns the headers of the file of a build; its digest as in RFC 9530. */
export function fileHeaders({ build_id, content_length, sha256 }: BuildRow): Record<string, string> {
  return {
    'content-type': 'application/octet-stream',
    'content-length': String(content_length),
    'content-disposition': `attachment; filename="${build_id}"`,
    'cache-control': 'no-store',
    ...(sha256 !== null && { 'repr-digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:` }),
  };
}

export function toBuild({ build_id, name, create_ts, content_length, tags }: BuildRow): Static<typeof Build> {
  return { id: build_id, name, created_at: create_ts.toISOString(), content_length, tags };
}

export function toBuildSummary(row: BuildRow): Static<typeof BuildSummary> {
  const { build_id, upload_id, name, create_ts, content_length, complete_ts, tags } = row;
  return {
    build_id,
    upload_id,
    display_name: name,
    create_ts: create_ts.toISOString(),
    content_length,
    complete: complete_ts !== null,
    tags,
  };
}

/** Returns one request, or the list if the client asked for parts, as Rivet does. */
export function toImageRequests(presigned_requests: Static<typeof PresignedRequest>[], is_multipart: boolean) {
  const [first] = presigned_requests;
  if (is_multipart || !first) return { image_presigned_requests: presigned_requests };
  return { image_presigned_request: first };
}
