// Messages from split bytes, and output that is no message.
import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { MessageLines } from "./message-lines.ts";

class Taken {
  readonly messages: JSONRPCMessage[] = [];
  readonly refusals: string[] = [];
  readonly lines: MessageLines;

  constructor(maxBytes: number) {
    this.lines = new MessageLines(maxBytes, {
      take: (message) => this.messages.push(message),
      refuse: (what) => this.refusals.push(what),
    });
  }
}

const message = { jsonrpc: "2.0", id: "a", result: { text: "é€😀" } } as const;

test("reads the same message from any split of its bytes, and copies them", () => {
  const text = Buffer.from(`\n${JSON.stringify(message)}\n${JSON.stringify(message)}\n`);
  for (let length = 1; length <= text.length; length++) {
    const taken = new Taken(1_000);
    const piece = Buffer.alloc(length);
    for (let from = 0; from < text.length; from += length) {
      const copied = text.copy(piece, 0, from);
      expect(taken.lines.push(piece.subarray(0, copied))).toBe(true);
      piece.fill(0);
    }
    expect(taken.messages).toEqual([message, message]);
  }
});

test("holds only the bytes of a line that arrives byte by byte, and releases them", () => {
  const before = bufferedBytes.byKind.answers;
  const taken = new Taken(1_000_000);
  const one = Buffer.from("x");
  Bun.gc(true);
  const objects = heapStats().objectCount;
  for (let count = 0; count < 200_000; count++) taken.lines.push(one);
  Bun.gc(true);
  expect(heapStats().objectCount - objects).toBeLessThan(20_000);
  taken.lines.end();
  expect(bufferedBytes.byKind.answers).toBe(before);
});

test("accepts empty lines as keep-alives, and refuses a flood of them", () => {
  const taken = new Taken(10_000);
  for (let hour = 0; hour < 24; hour++) expect(taken.lines.push(Buffer.from("\n".repeat(60)))).toBe(true);
  expect(taken.lines.push(Buffer.from(`${JSON.stringify(message)}\n`))).toBe(true);
  expect(taken.lines.push(Buffer.alloc(10_000, "\n"))).toBe(false);
  expect(taken.refusals).toEqual(["said too much without an answer, and was ended"]);
});

test("counts responses that answer no request as output of the process", () => {
  const response = Buffer.from(`${JSON.stringify(message)}\n`);
  const request = { jsonrpc: "2.0", id: "a", method: "tools/call" } as const;
  const taken = new Taken(10_000);
  for (let round = 0; round < 100; round++) {
    taken.lines.sent(request);
    expect(taken.lines.push(response)).toBe(true);
  }
  const pushed = Array.from({ length: 100 }, () => taken.lines.push(response));
  expect(pushed.indexOf(false)).toBe(39);
  expect(taken.refusals[0]).toBe("said too much without an answer, and was ended");
});
