/** Whether suites are to run at full length, as in CI; elsewhere a part of what takes long has to do. */
export const IS_LONG = process.env.MUSTER_TEST_LONG !== undefined;
