// Tests that a forwarded long answer equals the answer read as a whole, whatever pieces arrive.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { type BodySource, bodyOf } from "../../base/bytes/body-source.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { GatewayError } from "../../base/errors.ts";
import type { AskedRequest, Serving } from "./answer.ts";
import { embedding } from "./embedding/embedding.ts";
import { LongAnswer, type LongFormat } from "./long-answer.ts";

const model = { id: "public", context: 8_192, answerId: "embd-own" };
const format = embedding.long as LongFormat;
const asked = (input: unknown, encoding?: string): AskedRequest =>
  decodedRequest({ input, ...(encoding && { encoding_format: encoding }) }, "embedding");

/** Returns what the client gets of the answer, and the error if one ends it. */
function passed(text: string, request: AskedRequest, lengths: readonly number[] = []) {
  const bytes = Buffer.from(text);
  const first = lengths[0] ?? bytes.length;
  let given = "";
  let error: unknown;
  let ended = false;
  const long = LongAnswer.begin(ByteSpan.of(bytes.subarray(0, first)), bodyOf(Buffer.alloc(0)), format, request, model);
  if (!long) return { given: undefined, error, usage: undefined };
  long.flow({
    data: (piece) => {
      given += piece.view.toString("latin1");
    },
    end: () => {
      ended = true;
    },
    fail: (reason) => {
      error = reason;
    },
  });
  for (let at = first, n = 1; at < bytes.length; n++) {
    const length = Math.max(1, lengths[n] ?? bytes.length);
    const piece = Buffer.from(bytes.subarray(at, at + length));
    long.data(ByteSpan.of(piece));
    at += length;
  }
  long.end();
  expect(ended).toBe(error === undefined);
  return { given: Buffer.from(given, "latin1").toString("utf8"), error, usage: long.usage };
}

const usage = { prompt_tokens: 7, total_tokens: 7 };
const item = (index: number, value: unknown = [0.5, -1, 2]) => ({ object: "embedding", index, embedding: value });

const answers = fc.record({
  id: fc.oneof(fc.string(), fc.constantFrom(null, undefined)),
  object: fc.constantFrom("list", "other"),
  model: fc.oneof(fc.string(), fc.constant(null)),
  data: fc.array(fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 }), {
    minLength: 1,
    maxLength: 4,
  }),
  usage: fc.option(fc.constant(usage), { nil: undefined }),
  'näme "\\': fc.jsonValue(),
  encoding: fc.constantFrom("float", "base64", undefined),
  space: fc.constantFrom(0, 1, "\t"),
});

test("returns the same answer as a whole read, cut anywhere", () => {
  fc.assert(
    fc.property(answers, fc.array(fc.nat(40)), ({ data, encoding, space, ...others }, lengths) => {
      const request = asked(
        data.map(() => "x"),
        encoding,
      );
      const body = { ...others, data: data.map((value, index) => item(index, value)) };
      const text = ` ${JSON.stringify(body, null, space)}\n`;
      const serving: Serving = { model, deployment: {} as Serving["deployment"] };
      const whole = embedding.readAnswer(ByteSpan.of(text), request, serving, {
        id: model.answerId,
        created: 1,
        ownId: false,
      });
      const headLength = text.indexOf('"data"') + 12;
      const { given = "", error, usage: used } = passed(text, request, [headLength, ...lengths]);
      expect(error).toBeUndefined();
      expect(JSON.parse(given)).toEqual(JSON.parse(whole.text));
      expect(used).toEqual(whole.usage);
    }),
  );
});

const list = (...items: unknown[]) => JSON.stringify({ object: "list", data: items, model: "m", usage });

test.each<[string, string]>([
  ["fewer items than inputs", list(item(0))],
  ["more items than inputs", list(item(0), item(1), item(2))],
  ["an item without an embedding", list(item(0), { index: 1 })],
  ["an item that is no object", list(item(0), [1])],
  ["an embedding of something else than numbers", list(item(0), item(1, ["x"]))],
  ["an answer that ends early", list(item(0), item(1)).slice(0, -2)],
  ["something behind the answer", `${list(item(0), item(1))}x`],
  ["a list that appears twice", list(item(0), item(1)).replace('"model"', '"data":[],"model"')],
  ["a member that appears twice", list(item(0), item(1)).replace('"usage"', '"model":"n","usage"')],
  ["an error behind the items", list(item(0), item(1)).replace('"usage"', '"error":{"message":"x"},"usage"')],
  ["a usage of 70,000 bytes", list(item(0), item(1)).replace('{"prompt', `{"x":"${"x".repeat(70_000)}","prompt`)],
  ["an item of more than 1 MiB", list(item(0), { ...item(1), text: "x".repeat(1_100_000) })],
])("breaks the answer off at %s", (_what, text) => {
  const { error } = passed(text, asked(["a", "b"]), [text.indexOf('"data"') + 10, 1]);
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ code: "upstream_error" });
});

test.each(["[1]", "<html>", '"text"', "null"])("refuses %s before forwarding anything", (text) => {
  expect(() => passed(text, asked(["a"]))).toThrow(GatewayError);
});

test.each(['{"error":{"message":"x"},"data":[', '{"id":"1","da', '{"data":{"a":[', '{"nested":{"data":[1,'])(
  "does not begin a long answer with %s",
  (text) => {
    expect(passed(text, asked(["a"])).given).toBeUndefined();
  },
);

test("breaks off an answer that is longer than the request can use", () => {
  const text = `{"data":[${`{"embedding":[${"1,".repeat(400_000)}1]},`.repeat(160)}`;
  const { error } = passed(text, asked(["a"]), [1_000_000, 1_000_000]);
  expect(error).toMatchObject({ detail: expect.stringContaining("more than") });
});

test("forwards items unchanged if only the server knows their encoding", () => {
  const text = list(item(0, "any text"), item(1, "other"));
  const { given = "", error } = passed(text, asked(["a", "b"], "ubinary"), [30, 9]);
  expect(error).toBeUndefined();
  expect(JSON.parse(given)).toMatchObject({ data: [{ embedding: "any text" }, {}], model: "public" });
});

test("pauses, resumes and cancels the server with its client", () => {
  const received: string[] = [];
  const source: BodySource = {
    flow: () => {},
    pause: () => void received.push("pause"),
    resume: () => void received.push("resume"),
    cancel: () => void received.push("cancel"),
  };
  const long = LongAnswer.begin(ByteSpan.of('{"data":['), source, format, asked(["a"]), model);
  long?.flow({ data: () => {}, end: () => {}, fail: () => {} });
  long?.pause();
  long?.resume();
  long?.cancel();
  expect(received).toEqual(["resume", "pause", "resume", "cancel"]);
});
