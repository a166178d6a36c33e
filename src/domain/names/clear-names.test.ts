// Names in messages: a name that a lenient parser reads as a field of the protocol is refused, and a sender's own names
// pass.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { asCjson, asGo, asGoVersion2, byLowerCase, byUpperCase } from "../../../tests/support/lenient-json.ts";
import { ClearNames } from "./clear-names.ts";

const names = new ClearNames({
  known: ["type", "session", "model", "max_output_tokens", "progressToken"],
  open: ["parameters", "_meta"],
});

function fault(value: unknown): string | undefined {
  try {
    names.require(value);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

describe("names with faults", () => {
  test.each([
    ['{"Type":"a"}', "Type: some servers read it as `type`"],
    ['{"session":{"Model":"huge"}}', "session.Model: some servers read it as `session.model`"],
    ['{"session":[{"MODEL":"huge"}]}', "session[0].MODEL"],
    ['{"\\u017fession":{}}', "\\u017fession: some servers read it as `session`"],
    ['{"max_output_to\\u212aens":1}', "max_output_to\\u212aens"],
    ['{"type\\u0000":"a"}', "type\\u0000"],
    ['{"mod\\ud800el":"a"}', "mod\\ud800el"],
    ['{"maxOutputTokens":1}', "maxOutputTokens: some servers read it as `max_output_tokens`"],
    ['{"progress_token":1}', "progress_token: some servers read it as `progressToken`"],
    ['{"Parameters":{}}', "Parameters: some servers read it as `parameters`"],
    ['{"else":{"voice_x":1,"voiceX":2}}', "else.voiceX: some servers read it as `else.voice_x`"],
    ['{"session":{"__proto__":{"model":"huge"}}}', "session.__proto__: is no field"],
  ])("refuses %s", (text, message) => {
    expect(fault(JSON.parse(text))).toStartWith(message);
  });
});

test("passes fields of the protocol, unknown fields, and any names within schemas and metadata", () => {
  const text = '{"type":"a","session":{"model":"m","voice":{"Id":1}},"parameters":{"Model":1,"model":2,"__proto__":3}}';
  expect(fault(JSON.parse(text))).toBeUndefined();
  expect(fault(Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`x${i}`, 0])))).toContain("10000");
});

test("refuses every name that Go, cJSON or a parser without regard to case reads as `session` or `max_output_tokens`", () => {
  const likeLetters = fc.constantFrom("", "\u017f", "\u212a", "\u0130", "\u0000", "_", "-", "S", "K", "s", "k");
  const spelled = (name: string) =>
    fc
      .array(fc.tuple(fc.nat(name.length), likeLetters, fc.nat(1)), { maxLength: 3 })
      .map((edits) =>
        edits.reduce((text, [at, letter, cut]) => text.slice(0, at) + letter + text.slice(at + cut), name),
      );
  const isMeant = (name: string) =>
    [asGo, asCjson, asGoVersion2, byLowerCase, byUpperCase].some(({ fold }) =>
      ["session", "max_output_tokens"].some((known) => fold(name) === fold(known)),
    );
  fc.assert(
    fc.property(fc.oneof(spelled("session"), spelled("max_output_tokens")), (name) => {
      if (name === "session" || name === "max_output_tokens" || !isMeant(name)) return;
      expect(fault({ [name]: 1 })).toContain("some servers read it as");
    }),
    { numRuns: 2_000 },
  );
});
