/** Content in pieces, as a request brings it, and how many of them were asked for. */
export interface Pieces extends AsyncIterable<Uint8Array> {
  taken: number;
  /** Whether no more pieces will be requested. */
  is_closed: boolean;
}

/** The pieces one after the other; an error among them is thrown. */
export function piecesOf(...pieces: (string | Error)[]): Pieces {
  const content = {
    taken: 0,
    is_closed: false,
    async *[Symbol.asyncIterator]() {
      try {
        for (const piece of pieces) {
          content.taken += 1;
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
