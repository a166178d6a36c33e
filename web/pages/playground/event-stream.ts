// Reads Server-Sent Events (WHATWG HTML, 9.2.6) from an answer: the data of each event, as text.

const longestEvent = 4 * 1024 * 1024;

/** Only `data` counts here; comments, which keep a connection open, and other fields are passed over. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      if (rest.length > longestEvent) throw new Error("an event is longer than 4 MiB");
      // A carriage return at the end may be the first half of a line's end.
      const held = rest.endsWith("\r") ? 1 : 0;
      const lines = rest.slice(0, rest.length - held).split(/\r\n|\n|\r/);
      rest = (lines.pop() ?? "") + rest.slice(rest.length - held);
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
