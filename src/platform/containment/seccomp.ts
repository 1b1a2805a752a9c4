import { ptr } from 'bun:ffi';
import { FAIL_WITH, INSTRUCTION_BYTES } from './seccomp-constants.ts';
import { systemCall, trySystemCall } from './system-calls.ts';

const SET_MODE_FILTER = 1;
const GET_ACTION_AVAILABLE = 2;

/** Returns whether this kernel can refuse system calls by a filter. */
export function canFilterCalls(): boolean {
  return trySystemCall('seccomp', GET_ACTION_AVAILABLE, 0, ptr(new Uint32Array([FAIL_WITH]))) === 0;
}

/**
 * Makes the kernel refuse system calls of this thread, and of the program that it executes, forever. `filter`: from
 * `makeSeccompFilter`. `no_new_privs` must be set.
 */
export function filterCalls(filter: Uint8Array): void {
  // struct sock_fprog: the number of instructions, and where they are.
  const program = new BigUint64Array([BigInt(filter.byteLength / INSTRUCTION_BYTES), BigInt(ptr(filter))]);
  systemCall('seccomp', SET_MODE_FILTER, 0, ptr(program));
}
