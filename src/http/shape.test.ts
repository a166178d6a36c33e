// The quick decision whether a value fits agrees with the search for what is wrong with it.
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { chatRequest } from "../domain/chat.ts";
import { completionRequest } from "../domain/completion.ts";
import { embeddingRequest } from "../domain/embedding.ts";
import { alternatives, inline, type Node } from "./json-schema.ts";
import { fits, shapeOf } from "./shape.ts";
import { findFailure } from "./validation-failure.ts";

const rounds = 1_500;

/** The same numbers for every run (mulberry32), so that a failure can be repeated. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

class Maker {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = random(seed);
  }

  chance(share: number): boolean {
    return this.#next() < share;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#next() * values.length)] as Value;
  }

  /** Of values that fit, most of the time. */
  like(options: readonly Node[], depth = 0): unknown {
    const node = this.pick(options);
    if (node.const !== undefined) return node.const;
    if (node.enum) return this.pick(node.enum);
    const count = Math.min((node.minItems ?? 0) + Math.floor(this.#next() * 3), node.maxItems ?? 3);
    switch (node.type) {
      case "string":
        return node.pattern ? String(Math.floor(this.#next() * 1e6)) : "x".repeat(node.minLength ?? this.pick([0, 5]));
      case "integer":
      case "number":
        return (node.minimum ?? node.exclusiveMinimum ?? 0) + (node.type === "integer" ? 1 : 0.5);
      case "boolean":
        return this.chance(0.5);
      case "null":
        return null;
      case "array":
        return Array.from({ length: count }, () => this.like(alternatives(node.items ?? {}), depth + 1));
      case "object":
        return this.#object(node, depth);
      default:
        return this.#anything();
    }
  }

  /** The value with one thing in it changed, wherever that may be. */
  changed(value: unknown): unknown {
    if (typeof value !== "object" || value === null || this.chance(0.15)) return this.#anything();
    if (Array.isArray(value)) {
      if (value.length === 0 || this.chance(0.2)) return [...value, this.#anything()];
      const index = Math.floor(this.#next() * value.length);
      return value.map((item, i) => (i === index ? this.changed(item) : item));
    }
    const names = Object.keys(value);
    const name = this.pick(names);
    if (name === undefined || this.chance(0.2))
      return { ...value, [this.pick(["x", "12", "content"])]: this.#anything() };
    const { [name]: member, ...rest } = value as Record<string, unknown>;
    return this.chance(0.25) ? rest : { ...rest, [name]: this.changed(member) };
  }

  #object({ properties = {}, required = [], additionalProperties, propertyNames }: Node, depth: number): unknown {
    const result: Record<string, unknown> = {};
    for (const [name, node] of Object.entries(properties)) {
      if (!required.includes(name) && !this.chance(0.3 / (depth + 1))) continue;
      result[name] = this.like(alternatives(node), depth + 1);
    }
    if (typeof additionalProperties === "object" && this.chance(0.5)) {
      result[propertyNames?.pattern ? "17" : "extra"] = this.like(alternatives(additionalProperties), depth + 1);
    }
    return result;
  }

  #anything(): unknown {
    const odd = [
      null,
      true,
      "",
      "text",
      "user",
      "x".repeat(300),
      0,
      -1,
      0.5,
      1e9,
      Number.NEGATIVE_INFINITY,
      [],
      [1],
      ["x"],
      {},
      { type: 1 },
    ];
    return this.pick<unknown>(odd);
  }
}

const nested = z.object({
  list: z.array(z.union([z.string().max(3), z.int().min(2), z.null()])).max(4),
  tagged: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("a"), n: z.number().gt(0).lt(5) }),
    z.looseObject({ kind: z.literal("b"), flag: z.literal(true).optional() }),
  ]),
  labels: z.record(z.string().min(2), z.string().max(5)).optional(),
  any: z.unknown(),
});

describe.each([
  ["a chat request", chatRequest],
  ["a completion request", completionRequest],
  ["an embedding request", embeddingRequest],
  ["other shapes", nested],
])("for %s", (_, schema) => {
  const root = z.toJSONSchema(schema, { io: "input" }) as Node;
  const options = alternatives(inline(root, root));
  const shape = shapeOf(options);
  const judged = (values: Iterable<unknown>) => {
    let fitting = 0;
    for (const value of values) {
      const fit = fits(shape, value);
      if (fit) fitting++;
      const failure = findFailure(options, value);
      if (fit !== (failure === undefined)) throw new Error(`${JSON.stringify(value)}: ${JSON.stringify(failure)}`);
    }
    return fitting;
  };

  test("whole requests of every form are judged alike, and most of them fit", () => {
    const maker = new Maker(1);
    const fitting = judged(Array.from({ length: rounds }, () => maker.like(options)));
    expect(fitting).toBeGreaterThan(rounds / 2);
  });

  test("requests with one to three things changed are judged alike, and many of them do not fit", () => {
    const maker = new Maker(2);
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

test("a value that does not fit is left at its first fault, however much follows", () => {
  const root = z.toJSONSchema(chatRequest, { io: "input" }) as Node;
  const shape = shapeOf(alternatives(inline(root, root)));
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
  expect(fits(shape, { model: "m", messages })).toBe(false);
  expect(seen).toBeLessThan(5);
});
