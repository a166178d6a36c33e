// Tests the body that an engine gets: the client's bytes with only the necessary changes, however the request was
// decoded.

import { describe, expect, test } from "bun:test";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { DecodedRequest } from "../requests/decoded-request.ts";
import { dialects } from "../requests/dialects/dialects.ts";
import { factsOf } from "../requests/facts.ts";
import { rewriteRequest } from "./request-body.ts";

const text = (more: string) => `{ "messages":[{"role":"user","content":"Grüße"}], "model" : "m"${more}, "x":1.50 }`;
const usage = { include_usage: true };

/** Returns the body in a buffer that has other bytes before and after it. */
function among(body: string): ByteSpan {
  const buffer = Buffer.from(`{"m"${body}"m"}`);
  return new ByteSpan(buffer, 4, buffer.length - 4);
}

/** Decodes the request twice: once with the known offsets of the model's value, and once without them. */
function decoded(sent: ByteSpan): DecodedRequest[] {
  const bytes = sent.view;
  const facts = factsOf(dialects.chat, JSON.parse(bytes.toString()));
  const modelStart = bytes.indexOf('"m"');
  return [
    new DecodedRequest(dialects.chat, sent, { ...facts, modelStart, modelEnd: modelStart + 3 }),
    new DecodedRequest(dialects.chat, sent, facts),
  ];
}

test("sends the client's own bytes where nothing needs to change", () => {
  for (const more of [
    "",
    ',"stream":false',
    ',"stream":true,"stream_options":{"include_usage":true}',
    ',"max_tokens":4',
  ]) {
    const bytes = ByteSpan.of(text(more));
    for (const request of decoded(bytes)) expect(rewriteRequest(request, "m", false)).toBe(bytes);
  }
});

describe.each<[string, string, Record<string, unknown>]>([
  ["nothing more", "", {}],
  ["a stream", ',"stream":true', { stream_options: usage }],
  ["a stream with options", ',"stream":true,"stream_options":{"a":1}', { stream_options: { a: 1, ...usage } }],
  ["a stream with none", ',"stream":true,"stream_options":null', { stream_options: usage }],
  ["a stream that says no", ',"stream":true,"stream_options":{"include_usage":false}', { stream_options: usage }],
  ["both limits", ',"max_tokens":4,"max_completion_tokens":5', { max_tokens: undefined }],
  ["what is kept", ',"store":true,"metadata":{"a":"b"}', {}],
])("a request with %s", (_, more, changes) => {
  test.each([
    ["m", false],
    ["other", false],
    ['längeres "m"', false],
    ["m", true],
    ["other", true],
  ])("rewrites only the changed members for the model %p, recorded: %p", (model, recording) => {
    const expected = { ...JSON.parse(text(more)), ...changes, model };
    if (recording) for (const name of ["store", "metadata"]) expected[name] = undefined;
    for (const request of decoded(among(text(more)))) {
      const body = rewriteRequest(request, model, recording);
      const result = typeof body === "string" ? body : body.solid.text;
      expect(JSON.parse(result)).toEqual(JSON.parse(JSON.stringify(expected)));
      // Unchanged members keep their form.
      expect(result).toContain('"messages":[{"role":"user","content":"Grüße"}]');
      expect(result).toContain(', "x":1.50 }');
    }
  });
});

describe("a Responses request, which servers store by default", () => {
  const asked = (more: string) => ` \n{ "input":"Grüße {'store':1}"${more}, "model" : "m", "x":1.50 }`;
  const written = (more: string, model: string, isScanned: boolean, recording: boolean) => {
    const bytes = among(asked(more));
    const facts = factsOf(dialects.response, JSON.parse(asked(more)));
    const modelStart = bytes.view.indexOf('"m"');
    const places = isScanned ? { modelStart, modelEnd: modelStart + 3 } : {};
    const body = rewriteRequest(
      new DecodedRequest(dialects.response, bytes, { ...facts, ...places }),
      model,
      recording,
    );
    return typeof body === "string" ? body : body.solid.text;
  };

  test.each([
    ["nothing of it", ""],
    ["that it is", ',"store":true'],
    ["null", ',"store":null'],
    ["that it is not", ',"store":false'],
  ])("sends `store: false` whatever the client says of storage: %s", (_, more) => {
    for (const model of ["m", "other"]) {
      for (const recording of [true, false]) {
        const [scanned, parsed] = [written(more, model, true, recording), written(more, model, false, recording)];
        expect(JSON.parse(scanned)).toEqual({ ...JSON.parse(asked(more)), store: false, model });
        expect(scanned).toBe(parsed);
      }
    }
  });
});
