/** The help of `muster upgrade`. */
export const USAGE = `To upgrade, stop "muster serve", and start the new executable with the same data.
Before that, "muster upgrade --check" of the new executable says whether it can use the database.`;
