// Values by a schema, at random but the same in each run.
import { alternatives, type Node } from "../../src/requests/decode/json-schema.ts";

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

/** Makes values as a schema asks for them, and others that are nearly so. */
export class ValueMaker {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = random(seed);
  }

  /** From 0 up to, and without, 1. */
  fraction(): number {
    return this.#next();
  }

  chance(share: number): boolean {
    return this.#next() < share;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#next() * values.length)] as Value;
  }

  /** One of the values that fit, most of the time. */
  like(options: readonly Node[], depth = 0): unknown {
    const node = this.pick(options);
    if (node.const !== undefined) return node.const;
    if (node.enum) return this.pick(node.enum);
    const count = Math.min((node.minItems ?? 0) + Math.floor(this.#next() * 3), node.maxItems ?? 3);
    // What no schema knows, as model servers have it.
    if (node.not) return this.pick(["thinking", "video_url", "critic", "any"]);
    switch (node.type) {
      case "string":
        return node.pattern ? String(Math.floor(this.#next() * 1e6)) : this.#text(node);
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
      return {
        ...value,
        [this.pick(["x", "12", "content", "refusal", "stop", "max_completion_tokens"])]: this.#anything(),
      };
    const { [name]: member, ...rest } = value as Record<string, unknown>;
    return this.chance(0.25) ? rest : { ...rest, [name]: this.changed(member) };
  }

  #text({ minLength = 0, maxLength = 50 }: Node): string {
    const text = this.pick(["", "xxxxx", 'Grüße 😀, "one"\n\t/two\\ \u0001\u2028', "\ud83d", "x".repeat(40)]);
    return text.length < minLength || text.length > maxLength ? "x".repeat(minLength) : text;
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
