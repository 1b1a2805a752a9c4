import { existsSync } from 'node:fs';

const EMULATOR = Bun.which('qemu-aarch64-static');
/** The C library of arm64, as Debian has it for other processors. */
const LIBRARIES = '/usr/aarch64-linux-gnu';

/** Whether the kernel runs programs for arm64, also those that such a program starts. */
export const RUNS_ARM64 = process.arch === 'arm64' || existsSync('/proc/sys/fs/binfmt_misc/qemu-aarch64');

/** Whether programs for arm64 can be run, by the kernel or in the emulator. */
export const HAS_ARM64 = RUNS_ARM64 || (EMULATOR !== null && existsSync(LIBRARIES));

/** Returns the command that runs a program for arm64. */
export function commandOnArm64(program: string): string[] {
  return RUNS_ARM64 ? [program] : [EMULATOR ?? '', '-L', LIBRARIES, program];
}
