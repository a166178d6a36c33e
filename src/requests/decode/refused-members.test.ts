// Refused members in bodies that the byte scan understands: refused alike by the scan and by a full parse.
import { expect, test } from "bun:test";
import { seeded } from "../../../tests/support/seeded.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { GatewayError } from "../../base/errors.ts";
import { rulingMembers } from "../../domain/models/ruling-members.ts";
import { decodeRequest } from "./decode-request.ts";

const limits = {
  bodyBytes: 1_000_000,
  depth: 16,
  messages: 50,
  refusedMembers: [...rulingMembers, "service_tier", "file_id"],
};

function outcome(body: string): string {
  try {
    decodeRequest("chat", ByteSpan.of(body), limits);
    return "passed";
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return error.message;
  }
}

/** Returns the outcome of a full parse, which an escaped name demands. */
const parsed = (body: string) => outcome(body.replace('"model":', '"mod\\u0065l":'));

const messages = [{ role: "user", content: "Hello" }];
const chat = (more: object) => JSON.stringify({ model: "m", messages, ...more });
const many = (count: number, last: object) =>
  Object.fromEntries([
    ...Array.from({ length: count }, (_, index) => [`other_${index}`, index]),
    ...Object.entries(last),
  ]);

test.each([
  ["an unknown member", { bench: { chunks: 5 } }, "passed"],
  ["a refused member", { lora_path: "x" }, "lora_path"],
  ["a refused member inside an unknown one", { extra: { more: [{ lora_path: "x" }] } }, "extra.more[0].lora_path"],
  ["a known member that is refused", { bench: 1, service_tier: "flex" }, "service_tier"],
  ["a refused member that is null", { lora_path: null }, "passed"],
  ["an unset value of a refused member", { id_slot: -1 }, "passed"],
  ["a refused template argument", { bench: 1, chat_template_kwargs: { tools: [] } }, "chat_template_kwargs.tools"],
  ["a refused member among 16 unknown ones", many(15, { lora: "x" }), "lora"],
  ["a refused member behind 16 unknown ones", many(16, { lora: "x" }), "lora"],
  ["a refused member behind 40 unknown ones", many(40, { extra: { rid: "x" } }), "extra.rid"],
  ["properties of a schema that have refused names", { extra: { properties: { lora: {} } } }, "passed"],
  [
    "a file id in a part",
    { bench: 1, messages: [{ role: "user", content: [{ type: "text", text: "a", file_id: "f" }] }] },
    "file_id",
  ],
])("decides on %s by the scan as by a full parse", (_, more, expected) => {
  const body = chat(more);
  expect(outcome(body)).toBe(parsed(body));
  if (expected === "passed") expect(outcome(body)).toBe("passed");
  else expect(outcome(body)).toContain(`${expected}: is not passed on to model servers`);
});

test("decides on 4,000 random bodies by the scan as by a full parse", () => {
  const random = seeded(4);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const names = ["lora", "Lora", "LORA_PATH", "rid", "service_tier", "extra", "bench", "file_id", "properties"];
  const spelled = [...names, "l\u006fra", "lora ", "ſervice_tier", "chat_template_kwargs", "temperature", "stream"];
  const value = (depth: number): unknown => {
    const kind = random();
    if (depth > 2 || kind < 0.3) return pick([null, -1, 0, "", "text", true, false]);
    if (kind < 0.5) return Array.from({ length: Math.floor(random() * 3) }, () => value(depth + 1));
    return Object.fromEntries(
      Array.from({ length: 1 + Math.floor(random() * 3) }, () => [pick(spelled), value(depth + 1)]),
    );
  };
  const outcomes = { passed: 0, refused: 0 };
  for (let i = 0; i < 4_000; i++) {
    const count = random() < 0.1 ? 20 : Math.floor(random() * 4);
    const more = Object.fromEntries(
      Array.from({ length: count }, (_, at) => [random() < 0.5 ? `o${at}` : pick(spelled), value(0)]),
    );
    const body = chat(more);
    const isPassed = outcome(body) === "passed";
    expect([body, isPassed]).toEqual([body, parsed(body) === "passed"]);
    outcomes[isPassed ? "passed" : "refused"]++;
  }
  expect(Math.min(outcomes.passed, outcomes.refused)).toBeGreaterThan(500);
});
