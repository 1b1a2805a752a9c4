/** Whether suites run at full length, as in CI. Elsewhere long ones run a part. */
export const IS_FULL_LENGTH = process.env.MUSTER_TEST_LONG !== undefined;
