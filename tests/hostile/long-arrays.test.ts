// Checks of a body cost little more than its parse, whatever arrays it has: they hold the event loop for everybody.
import { expect, test } from "bun:test";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { parseOnceRead } from "../../src/base/text/json-object.ts";
import { bodyMass } from "../../src/base/text/json-text.ts";
import { parsedRequest } from "../../src/requests/decode/decode-request.ts";
import { mayOutlast } from "../../src/requests/facts.ts";

const items = (item: string) => Array<string>(1_500_000).fill(item).join(",");
const chat = (member: string) => `{"model":"m","messages":[{"role":"user","content":"x"}],${member}}`;
const limits = { bodyBytes: 33_554_432, depth: 64, messages: 2_048 };

/** Returns the shortest time of three, in milliseconds of this process. */
function leastCpuMs(work: () => unknown): number {
  const times = Array.from({ length: 3 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

test.each([
  ["a member that no schema knows", chat(`"x":[${items('"a"')}]`)],
  ["plugins of OpenRouter", chat(`"plugins":[${items('"a"')}]`)],
])("reads %s with millions of items for a few times its parse", (_, text) => {
  const body = JSON.parse(text) as Record<string, unknown>;
  const parse = leastCpuMs(() => JSON.parse(text));
  const bytes = ByteSpan.of(text);
  expect(leastCpuMs(() => parsedRequest("chat", bytes, limits))).toBeLessThan(parse * 8);
  expect(leastCpuMs(() => mayOutlast({ limitMembers: ["max_tokens"] }, body, 100))).toBeLessThan(parse * 4);
});

test("names the number that is too large among millions for a few times their parse", () => {
  const text = `{"x":[${items("1")},1e999]}`;
  const parse = leastCpuMs(() => JSON.parse(text));
  const refuse = () =>
    expect(() => parseOnceRead(text, { depth: 64, ...bodyMass })).toThrow(
      "the number of the field `x[1500000]` is too large",
    );
  expect(leastCpuMs(refuse)).toBeLessThan(parse * 10);
});
