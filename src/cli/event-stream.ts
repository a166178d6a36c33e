// The events of a streamed answer.

/** One longer event is a fault: no token comes near it. */
const maxEventLength = 8 * 1024 * 1024;

/**
 * The data of each event of a `text/event-stream` (WHATWG HTML, 9.2.6): any of LF, CRLF, CR ends a line, several `data`
 * lines join with LF, comments and other fields are dropped. Throws on an event beyond 8 MiB.
 */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    if (rest.length > maxEventLength) throw new Error(`an event is longer than ${maxEventLength} characters`);
    // A CR at the very end may be half of a CRLF.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      if (line !== "" || data.length === 0) continue;
      yield data.join("\n");
      data = [];
    }
  }
}
