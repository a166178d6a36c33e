// Reads Server-Sent Events (WHATWG HTML, 9.2.6) from an answer: the data of each event, as text.

const maxEventLength = 4 * 1024 * 1024;

/** Yields `data` only; skips other fields, and the comments that keep a connection open. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let endedInReturn = false;
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const text = decoder.decode(value, { stream: true });
      if (text === "") continue;
      // Skips the LF of a CRLF whose CR ended the previous chunk.
      rest += endedInReturn && text.startsWith("\n") ? text.slice(1) : text;
      endedInReturn = text.endsWith("\r");
      if (rest.length > maxEventLength) throw new Error("an event is longer than 4 MiB");
      const lines = rest.split(/\r\n|\n|\r/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield data.join("\n");
          data = [];
        } else if (line.startsWith("data:")) {
          data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
        }
      }
    }
  } finally {
    // The cancellation is not awaited, because it may never settle.
    reader.cancel().catch(() => {});
  }
}
