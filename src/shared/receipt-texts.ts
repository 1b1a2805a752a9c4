/** Why the matchmaker gave no seat in a lobby that it considered, by the reason in a receipt. */
export const PASSED_OVER = {
  closed: 'it was closed to finds',
  private: 'players join it only by its id or code',
  full: 'it had no free seat',
  tags: 'it has other tags',
  awaited: 'its free seats were kept for finds that came earlier',
  machine: 'its machine is being drained, or does not answer',
  less_full: 'another one had more players',
};
