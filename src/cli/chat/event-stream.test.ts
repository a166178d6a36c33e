// Tests that the events of a stream are read however the network cuts them.
import { expect, test } from "bun:test";
import { readEvents } from "./event-stream.ts";

function pieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let start = 0;
  return new ReadableStream({
    pull(controller) {
      if (start >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(start, start + size));
      start += size;
    },
  });
}

async function eventsOf(text: string, size: number): Promise<string[]> {
  const events: string[] = [];
  for await (const event of readEvents(pieces(text, size), new AbortController().signal)) events.push(event);
  return events;
}

const stream = ": keep-alive\n\ndata: one é\n\nevent: x\nid: 7\ndata:two\ndata: lines\n\n\ndata: [DONE]\n\n";

test.each([1, 2, 3, 7, 1000])(
  "reads whole events from pieces of %p bytes, without comments and other fields",
  async (size) => {
    expect(await eventsOf(stream, size)).toEqual(["one é", "two\nlines", "[DONE]"]);
  },
);

test.each(["\r\n", "\r"])("ends the lines of an event at %j too", async (end) => {
  for (const size of [1, 2, 5, 1000]) {
    // Another line follows, because a CR at the very end could be half of a CRLF.
    expect(await eventsOf(`${stream.replaceAll("\n", end)}:${end}`, size)).toEqual(["one é", "two\nlines", "[DONE]"]);
  }
});

test("refuses an event that never ends", async () => {
  const endless = `data: ${"x".repeat(9 * 1024 * 1024)}`;
  await expect(eventsOf(endless, 1024 * 1024)).rejects.toThrow("an event is longer than");
});
