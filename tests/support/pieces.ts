/** Content in pieces, like the body of a request, and the number of requested pieces. */
export interface Pieces extends AsyncIterable<Uint8Array> {
  requested_count: number;
  /** Whether no more pieces will be requested. */
  is_closed: boolean;
}

/** Returns the pieces in order. An error among them is thrown. */
export function piecesOf(...pieces: (string | Error)[]): Pieces {
  const content = {
    requested_count: 0,
    is_closed: false,
    async *[Symbol.asyncIterator]() {
      try {
        for (const piece of pieces) {
          content.requested_count += 1;
          if (piece instanceof Error) throw piece;
          yield Buffer.from(piece);
        }
      } finally {
        content.is_closed = true;
      }
    },
  };
  return content;
}
