import { describe, expect, test } from "bun:test";
import { withinMs } from "../../tests/support/long.ts";
import type { GatewayError } from "../base/errors.ts";
import { linesOf, readFrame, requestOf } from "./input-lines.ts";

const limits = { bodyBytes: 10_000, depth: 64, messages: 100 };

async function* inPieces(text: string, size: number) {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe("the lines of a batch file", () => {
  const text = '{"a":1}\n\n  \r\n{"b":"\u00fc"}\r\nlast';

  test("finds the lines of a batch file with numbers and positions, however its bytes are split", async () => {
    const bytes = Buffer.from(text);
    for (const size of [1, 2, 3, 7, 1_000]) {
      const lines = await Array.fromAsync(linesOf(inPieces(text, size), limits));
      expect(lines.map(({ line, bytes }) => [line, bytes?.toString().trim()])).toEqual([
        [1, '{"a":1}'],
        [4, '{"b":"\u00fc"}'],
        [5, "last"],
      ]);
      for (const { start, end, bytes: found } of lines)
        expect(bytes.subarray(start, end).equals(found ?? bytes)).toBe(true);
    }
  });

  test("reports batch lines that exceed the request size, and reads the next ones", async () => {
    const lines = await Array.fromAsync(linesOf(inPieces(`${"x".repeat(20_000)}\n{}\n`, 999), limits));
    expect(lines.map(({ line, bytes }) => [line, bytes?.toString()])).toEqual([
      [1, undefined],
      [2, "{}"],
    ]);
  });

  test("reads a line of exactly as many bytes as a request and its frame may have", async () => {
    const most = limits.bodyBytes + 4_096;
    const lines = await Array.fromAsync(
      linesOf(inPieces(`${"x".repeat(most)}\n${"x".repeat(most + 1)}\n`, 999), limits),
    );
    expect(lines.map(({ bytes }) => bytes?.length)).toEqual([most, undefined]);
  });

  test("finds a line behind 19 MB of blank lines within a second", async () => {
    const text = `${"\n".repeat(10_000_000)}${" \r\n".repeat(3_000_000)}  {}\n`;
    const startedMs = performance.now();
    const lines = await Array.fromAsync(linesOf(inPieces(text, 65_536), limits));
    expect(lines.map(({ line, start, bytes }) => [line, start, bytes?.toString()])).toEqual([
      [13_000_001, 19_000_000, "  {}"],
    ]);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(1_000));
  });

  test("finds no lines in a file that has only blank lines", async () => {
    expect(await Array.fromAsync(linesOf(inPieces("\n \n", 1), limits))).toEqual([]);
  });
});

describe("one line of a batch file", () => {
  const endpoint = "/v1/chat/completions";
  const body = { model: "m", messages: [{ role: "user", content: "Hi" }] };
  const good = { custom_id: "a", method: "POST", url: endpoint, body };
  const read = (line: unknown) => {
    const bytes = Buffer.from(typeof line === "string" ? line : JSON.stringify(line));
    const frame = readFrame(bytes, endpoint, limits);
    return { ...frame, request: requestOf(frame, endpoint, limits) };
  };

  test("decodes a batch line to its custom ID and request", () => {
    const { customId, request } = read(good);
    expect([customId, request.model, request.stream, request.body]).toEqual(["a", "m", false, body]);
  });

  test("refuses a batch line with MCP tools of the gateway, and accepts tools with a server URL", () => {
    const endpoint = "/v1/responses";
    const asked = (tool: object) => {
      const body = { model: "m", input: "Hi", tools: [{ type: "mcp", server_label: "weather", ...tool }] };
      const line = { custom_id: "a", method: "POST", url: endpoint, body };
      return requestOf(readFrame(Buffer.from(JSON.stringify(line)), endpoint, limits), endpoint, limits);
    };
    expect(() => asked({})).toThrow(expect.objectContaining({ param: "body.tools[0]" }));
    expect(asked({ server_url: "https://tools.example.com/mcp" }).model).toBe("m");
  });

  test.each([
    ["that is no JSON", "{", undefined],
    ["that is an array", [], undefined],
    [
      "with two members named body",
      '{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{},"body":{}}',
      undefined,
    ],
    ["with an extra Body", { ...good, Body: {} }, "Body"],
    ["with an extra uRL that contains a control character", { ...good, "u\u0001RL": "x" }, "u\\u0001RL"],
    ["with a number outside the range", JSON.stringify(good).replace('"Hi"', "1e999"), undefined],
    ["without an id", { ...good, custom_id: undefined }, "custom_id"],
    ["with an id that contains NUL", { ...good, custom_id: "a\0" }, "custom_id"],
    ["with another method", { ...good, method: "GET" }, "method"],
    ["with another path", { ...good, url: "/v1/embeddings" }, "url"],
    ["without a body", { ...good, body: null }, "body"],
    ["with a faulty body", { ...good, body: { ...body, temperature: "hot" } }, "body.temperature"],
    ["that is streamed", { ...good, body: { ...body, stream: true } }, "body.stream"],
  ])("refuses a batch line %s, and names the faulty member if there is one", (_, line, param) => {
    let refusal: GatewayError | undefined;
    try {
      read(line);
    } catch (error) {
      refusal = error as GatewayError;
    }
    expect([refusal?.code, refusal?.param]).toEqual(["invalid_request", param]);
  });
});
