// Tests that a compiled rule accepts the same values as its JSON Schema.
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { mismatches, type Schema } from "../../../tests/contract/json-schema.ts";
import { ValueMaker } from "../../../tests/support/value-maker.ts";
import { tierRequest } from "../../wire/accounts.ts";
import { chatRequest } from "../../wire/chat.ts";
import { completionRequest } from "../../wire/completion.ts";
import { embeddingRequest } from "../../wire/embedding.ts";
import { messageCountRequest, messageRequest } from "../../wire/messages.ts";
import { compileRule } from "./compile-rule.ts";
import { alternatives, inline, type Node } from "./json-schema.ts";
import { requireFit } from "./validation.ts";
import { findFailure } from "./validation-failure.ts";

const rounds = 300;

const nested = z.object({
  list: z.array(z.union([z.string().max(3), z.int().min(2), z.null()])).max(4),
  tagged: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("a"), n: z.number().gt(0).max(5) }),
    z.looseObject({ kind: z.literal("b"), flag: z.literal(true).optional() }),
  ]),
  labels: z.record(z.string().min(2), z.string().max(5)).optional(),
  any: z.unknown(),
});

describe.each([
  ["a chat request", chatRequest],
  ["a completion request", completionRequest],
  ["an embedding request", embeddingRequest],
  ["a Messages request", messageRequest],
  ["a request to count a prompt of Messages", messageCountRequest],
  ["other shapes", nested],
])("validation for %s", (_, schema) => {
  const root = z.toJSONSchema(schema, { io: "input" }) as Node;
  const options = alternatives(inline(root, root));
  const rule = compileRule(schema);
  const { $schema: _schema, $defs = {}, ...described } = root as Schema & { $defs?: Readonly<Record<string, Schema>> };
  const resolve = (reference: string) => $defs[reference.replace("#/$defs/", "")] ?? {};
  const judged = (values: Iterable<unknown>) => {
    let fitting = 0;
    for (const value of values) {
      const failure = findFailure(rule, value);
      const problems = mismatches(value, described, resolve);
      if (failure === undefined) fitting++;
      if ((failure === undefined) !== (problems.length === 0)) {
        throw new Error(`${JSON.stringify(value)}: ${JSON.stringify(failure)}, ${problems.join("; ")}`);
      }
    }
    return fitting;
  };

  test("agrees with JSON Schema on whole requests of every form, most of which fit", () => {
    const maker = new ValueMaker(1);
    const fitting = judged(Array.from({ length: rounds }, () => maker.like(options)));
    expect(fitting).toBeGreaterThan(rounds / 2);
  });

  test("agrees with JSON Schema on requests with one to three changes, many of which do not fit", () => {
    const maker = new ValueMaker(2);
    const values = Array.from({ length: rounds }, () => {
      let value = maker.changed(maker.like(options));
      while (maker.chance(0.4)) value = maker.changed(value);
      return value;
    });
    const fitting = judged(values);
    expect(fitting).toBeGreaterThan(rounds / 20);
    expect(fitting).toBeLessThan(rounds * 0.9);
  });
});

test("stops at the first failure of a value, however much follows", () => {
  let seen = 0;
  const messages = new Proxy(
    Array.from({ length: 100_000 }, () => 1),
    {
      get: (target, name) => {
        if (typeof name === "string" && /^\d+$/.test(name)) seen++;
        return Reflect.get(target, name);
      },
    },
  );
  expect(findFailure(compileRule(chatRequest), { model: "m", messages })).toMatchObject({ path: ["messages", 0] });
  expect(seen).toBeLessThan(5);
});

test.each([
  ["exclusiveMaximum", z.number().lt(5)],
  ["multipleOf", z.number().multipleOf(2)],
])("refuses to compile a shape with the unchecked constraint %s", (keyword, shape) => {
  expect(() => compileRule(z.object({ a: shape }))).toThrow(keyword);
});

test("names null in the message about a required member that may be null", () => {
  const fit = (body: unknown) => () => requireFit(compileRule(tierRequest), body);
  expect(fit({})).toThrow("requests_per_minute: is required and must be an integer from 1 to 1000000000, or null.");
  expect(fit({ requests_per_minute: null, tokens_per_minute: null })).not.toThrow();
});
