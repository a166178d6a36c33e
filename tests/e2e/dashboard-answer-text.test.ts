// How the playground reads a stream of events, wherever it is cut, and divides an answer into text and code.
import { expect, test } from "bun:test";
import { readEvents } from "../../web/api/event-stream.ts";
import { type Inline, inlineOf } from "../../web/parts/answer/inline-text.ts";
import { BlockReader, blocksOf, itemsOf } from "../../web/parts/answer/text-blocks.ts";

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

test("reads the same events wherever a stream is cut, within characters and line ends too", async () => {
  const bytes = new TextEncoder().encode(stream);
  for (let at = 0; at <= bytes.length; at++) {
    expect(await eventsOf(bytes.slice(0, at), bytes.slice(at)), `cut at ${at}`).toEqual(events);
  }
  expect(await eventsOf(...Array.from(bytes, (byte) => new Uint8Array([byte])))).toEqual(events);
});

test("ignores an unfinished event and refuses an endless one", async () => {
  expect(await eventsOf("data: half")).toEqual([]);
  expect(await eventsOf("data: half\n")).toEqual([]);
  await expect(eventsOf("data: ", "x".repeat(5 * 1024 * 1024))).rejects.toThrow("4 MiB");
});

test("closes the stream when its reader stops", async () => {
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

test("separates fenced code, and extends an unclosed fence to the end", () => {
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

test("keeps fence lookalikes as text, and drops only empty lines", () => {
  expect(shapes("Use ``` here")).toEqual([["text", "Use ``` here", ""]]);
  expect(shapes("``` a ``` b")).toEqual([["text", "``` a ``` b", ""]]);
  expect(shapes("    ```\n    code")).toEqual([["text", "    ```\n    code", ""]]);
  expect(shapes("\n\n")).toEqual([]);
});

const kinds = (text: string) => blocksOf(text).map(({ kind }) => kind);

test("separates headings, lists, quotes, rules and tables from text that only looks like them", () => {
  expect(kinds("# A\ntext\n- one\n- two\n\n> said\n\n---\n| a | b |\n| - | :-: |\n| 1 | 2 |\nend")).toEqual([
    ...(["heading", "text", "list", "quote", "rule", "table", "text"] as const),
  ]);
  expect(kinds("#hash\n1 - 2\na | b\n-x")).toEqual(["text"]);
  expect(itemsOf("1. one\n   more\n   - in\n2. two")).toMatchObject([
    { text: "one\nmore", number: 1, items: [{ text: "in", number: undefined }] },
    { text: "two", number: 2 },
  ]);
});

const plainOf = (parts: readonly Inline[]): string =>
  parts.map((part) => ("text" in part ? part.text : `<${part.kind}>${plainOf(part.parts)}</>`)).join("");

test("renders closed inline marks, and keeps unclosed ones as text", () => {
  for (const [written, shown] of [
    ["a **bold *both* b** c", "a <strong>bold <em>both</> b</> c"],
    ["snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"],
    ["**open `a*b*` and ~~gone~~", "**open a*b* and <del>gone</>"],
    ["\\*no\\* [x](https://a.example/b) (https://c.example).", "*no* <link>x</> (<link>https://c.example</>)."],
  ] as const) {
    expect(plainOf(inlineOf(written))).toBe(shown);
  }
});

test("makes no link to a script, a file or this server from an answer", () => {
  for (const written of [
    "[x](javascript:alert(1))",
    "[x](data:text/html,a)",
    "[x](/sign-out)",
    "![x](//evil.example/a)",
  ]) {
    expect(JSON.stringify(inlineOf(written))).not.toContain('"link"');
  }
});

test("splits and marks any text in linear time", () => {
  const unfriendly = ["*a ", "`", "[", "](http://", "**_~~", "> ", "- ", "| ", "\\", "h", "`a``b", "# "];
  for (const piece of unfriendly) {
    const once = (length: number) => {
      const text = piece.repeat(length / piece.length);
      const startedMs = performance.now();
      for (const block of blocksOf(text)) inlineOf(block.text);
      return performance.now() - startedMs;
    };
    once(20_000);
    // Eight times the length takes 64 times as long where it is quadratic. A shared machine may slow down either length.
    const isLinear = () => once(320_000) < 30 * Math.max(4, once(40_000));
    expect(Array.from({ length: 10 }).some(isLinear), JSON.stringify(piece)).toBe(true);
  }
});

test("splits a growing text as it splits the whole, without changing earlier blocks", () => {
  const whole =
    "# Title\n\nSome **text**.\n\n- one\n- two\n\n  more\n\n```js\nlet a;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend";
  const reader = new BlockReader();
  let before = reader.read("");
  for (let length = 1; length <= whole.length; length++) {
    const now = reader.read(whole.slice(0, length));
    expect(now).toEqual(blocksOf(whole.slice(0, length)));
    for (const block of before.slice(0, -1)) expect(now).toContain(block);
    before = now;
  }
});
