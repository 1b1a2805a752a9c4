interface Observer {
  /** Called with the length of each piece. The content fails with what it throws. */
  onBytes?(bytes: number): void;
  /** Called once, when the content was read to its end (`is_whole`), failed or was cancelled. */
  onEnd(is_whole: boolean): void;
}

/** Returns a body with the same content, which reports how it is read. The content is read only as fast as the body. */
export function observeBody(content: ReadableStream<Uint8Array>, { onBytes, onEnd }: Observer) {
  const reader = content.getReader();
  let has_ended = false;
  function end(is_whole: boolean): void {
    if (has_ended) return;
    has_ended = true;
    onEnd(is_whole);
  }
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(sink) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            // A cancelled read ends in this way, too.
            if (!has_ended) sink.close();
            end(true);
            return;
          }
          onBytes?.(value.byteLength);
          sink.enqueue(value as Uint8Array<ArrayBuffer>);
        } catch (error) {
          end(false);
          // Has no effect on content that has failed.
          await reader.cancel(error).catch(() => {});
          throw error;
        }
      },
      async cancel(reason) {
        end(false);
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
