import { arch } from 'node:os';

/** Names of processors in images, where they differ from those in Node. */
const NAMES: Record<string, string> = { x64: 'amd64', ia32: '386' };

/** This machine's processor, as images name it. */
export const IMAGE_ARCHITECTURE = NAMES[arch()] ?? arch();
