// Reads Server-Sent Events (WHATWG HTML, 9.2.6) from an answer: the data of each event, as text.

const maxEventLength = 4 * 1024 * 1024;

/** Only `data` counts here; comments, which keep a connection open, and other fields are passed over. */
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
      // The second half of a line's end whose first half was the last of what came before.
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
    // Without waiting: what is cancelled may never say so.
    reader.cancel().catch(() => {});
  }
}
