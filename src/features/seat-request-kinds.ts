/** The ways to ask for a seat. */
export const SEAT_REQUEST_KINDS = ['find', 'join', 'create'] as const;
export type SeatRequestKind = (typeof SEAT_REQUEST_KINDS)[number];
