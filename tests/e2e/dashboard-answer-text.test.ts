// How the playground reads a stream of events, wherever it is cut, and divides an answer into text and code.
import { expect, test } from "bun:test";
import { readEvents } from "../../web/pages/playground/event-stream.ts";
import { blocksOf } from "../../web/parts/answer/text-blocks.ts";

async function eventsOf(...pieces: (string | Uint8Array)[]): Promise<string[]> {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
      controller.close();
    },
  });
  return Array.fromAsync(readEvents(body));
}

const stream =
  'data: {"a":"Grüße 😀"}\r\n\r\n: still here\n\nevent: x\ndata:one\ndata: two\n\nid: 7\n\ndata: [DONE]\r\r';
const events = ['{"a":"Grüße 😀"}', "one\ntwo", "[DONE]"];

test("events are the same wherever the stream is cut, also within a character or the end of a line", async () => {
  const bytes = new TextEncoder().encode(stream);
  for (let at = 0; at <= bytes.length; at++) {
    expect(await eventsOf(bytes.slice(0, at), bytes.slice(at)), `cut at ${at}`).toEqual(events);
  }
  expect(await eventsOf(...Array.from(bytes, (byte) => new Uint8Array([byte])))).toEqual(events);
});

test("an event whose end never came is none, and one without bound is refused", async () => {
  expect(await eventsOf("data: half")).toEqual([]);
  expect(await eventsOf("data: half\n")).toEqual([]);
  await expect(eventsOf("data: ", "x".repeat(5 * 1024 * 1024))).rejects.toThrow("4 MiB");
});

test("whoever stops reading ends the stream", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: 1\n\n")),
    cancel: () => resolve(true),
  });
  for await (const event of readEvents(body)) {
    expect(event).toBe("1");
    break;
  }
  expect(await promise).toBe(true);
});

const shapes = (text: string) => blocksOf(text).map(({ kind, text, language }) => [kind, text, language]);

test("fenced code stands apart, and a fence that is open yet reaches to the end", () => {
  expect(shapes("A\nB\n\nC\n```ts\nlet a;\n\nlet b;\n```\nD")).toEqual([
    ["text", "A\nB", ""],
    ["text", "C", ""],
    ["code", "let a;\n\nlet b;", "ts"],
    ["text", "D", ""],
  ]);
  expect(shapes("```\n<b>")).toEqual([["code", "<b>", ""]]);
  expect(shapes("````md\n```js\n1\n```\n````")).toEqual([["code", "```js\n1\n```", "md"]]);
  expect(shapes("~~~\n```\n~~~")).toEqual([["code", "```", ""]]);
});

test("what only looks like a fence is text, and nothing of a text is lost but empty lines", () => {
  expect(shapes("Use ``` here")).toEqual([["text", "Use ``` here", ""]]);
  expect(shapes("``` a ``` b")).toEqual([["text", "``` a ``` b", ""]]);
  expect(shapes("    ```\n    code")).toEqual([["text", "    ```\n    code", ""]]);
  expect(shapes("\n\n")).toEqual([]);
});
