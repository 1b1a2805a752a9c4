/** The action that refuses a call with the error number in its low bits (SECCOMP_RET_ERRNO). */
export const FAIL_WITH = 0x00050000;
/** The size of an instruction of a filter (struct sock_filter). */
export const INSTRUCTION_BYTES = 8;
