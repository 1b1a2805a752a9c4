/** Kinds of upload that are pictures. */
export const PICTURE_KINDS = ['custom_avatar', 'game_logo', 'game_banner', 'group_avatar', 'identity_avatar'] as const;
export type PictureKind = (typeof PICTURE_KINDS)[number];

const MEGABYTE = 1_000_000;

/** Limits of the reference API. */
export const BYTES_MAX: Record<PictureKind, number> = {
  custom_avatar: 2 * MEGABYTE - 1,
  identity_avatar: 2 * MEGABYTE - 1,
  group_avatar: 2 * MEGABYTE - 1,
  game_logo: 5 * MEGABYTE - 1,
  game_banner: 10 * MEGABYTE - 1,
};

/** Returns the type of a picture by its file name; undefined for other files. */
export function imageTypeOf(path: string): 'image/png' | 'image/jpeg' | undefined {
  if (/\.png$/i.test(path)) return 'image/png';
  return /\.jpe?g$/i.test(path) ? 'image/jpeg' : undefined;
}

/** The length of the longest signature. */
export const SIGNATURE_BYTES_MAX = 8;

/** Returns whether a file starts like its type (PNG: ISO 15948 5.2, JPEG: the SOI marker and another). */
export function hasSignatureOf(type: 'image/png' | 'image/jpeg', start: Uint8Array): boolean {
  const signature = type === 'image/png' ? [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] : [0xff, 0xd8, 0xff];
  return signature.every((byte, index) => start[index] === byte);
}
