// Every parameter with every wrong type and at every bound: a 400 that names the field and what it may be.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { operations, type ParameterServer, type Path, rawMarker, startParameterServer } from "./parameter-server.ts";

let gateway: ParameterServer;
const send = (path: Path, changes: Record<string, unknown>, rawValue?: string) => gateway.send(path, changes, rawValue);

beforeAll(async () => {
  gateway = await startParameterServer();
});

afterAll(() => gateway[Symbol.asyncDispose]());

interface Range {
  /** Text of the allowed range in the message. */
  says: string;
  allowed: readonly number[];
  refused: readonly number[];
}

const both: readonly Path[] = ["/v1/chat/completions", "/v1/completions"];
const chatOnly: readonly Path[] = ["/v1/chat/completions"];
const completionOnly: readonly Path[] = ["/v1/completions"];

/** Bounds of the OpenAI API, where docs/reference gives no other. */
const numbers: readonly [field: string, paths: readonly Path[], range: Range][] = [
  ["temperature", both, { says: "a number from 0 to 2", allowed: [0, 0.7, 2], refused: [-0.0001, 2.0001, -1, 1e300] }],
  ["top_p", both, { says: "a number from 0 to 1", allowed: [0, 1e-9, 0.5, 1], refused: [-0.1, 1.0001] }],
  ["frequency_penalty", both, { says: "a number from -2 to 2", allowed: [-2, 0, 2], refused: [-2.0001, 2.0001] }],
  ["presence_penalty", both, { says: "a number from -2 to 2", allowed: [-2, 0, 2], refused: [-2.0001, 2.0001] }],
  [
    "max_tokens",
    chatOnly,
    { says: "an integer of at least 1 or -1", allowed: [1, 1_000_000, -1], refused: [0, -2, 1.5] },
  ],
  [
    "max_tokens",
    completionOnly,
    { says: "an integer of at least 0 or -1", allowed: [0, 1, 1_000_000, -1], refused: [-2, 1.5] },
  ],
  [
    "max_completion_tokens",
    both,
    { says: "an integer of at least 1 or -1", allowed: [1, 1_000_000, -1], refused: [0, -2, 1.5] },
  ],
  ["n", both, { says: "an integer from 1 to 128", allowed: [1, 128], refused: [0, 129, -1, 1.5, 1e9] }],
  ["top_logprobs", chatOnly, { says: "an integer from 0 to 20", allowed: [0, 20], refused: [-1, 21, 0.5] }],
  ["logprobs", both, { says: "an integer from 0 to 20", allowed: [0, 20], refused: [-1, 21, 0.5] }],
  ["best_of", both, { says: "an integer from 1 to 128", allowed: [1, 128], refused: [0, 129, 1.5] }],
  ["seed", both, { says: "must be an integer", allowed: [0, -1, 1.0, 2 ** 53, 1e300], refused: [0.5] }],
  [
    "dimensions",
    ["/v1/embeddings"],
    { says: "an integer from 1 to 65536", allowed: [1, 65_536], refused: [0, 65_537, 1.5] },
  ],
];

describe.each(numbers)("%s", (field, paths, { says, allowed, refused }) => {
  test.each([...paths])(
    "accepts a number's bounds on %s and refuses values beyond them with the range",
    async (path) => {
      for (const value of allowed) expect([value, (await send(path, { [field]: value }))[0]]).toEqual([value, 200]);
      for (const value of refused) {
        const [status, message] = await send(path, { [field]: value });
        expect([value, status]).toEqual([value, 400]);
        expect(message).toStartWith(`${field}: `);
        expect(message).toContain(says);
      }
    },
  );

  test.each([...paths])("refuses an overflowing number on %s and treats null as absent", async (path) => {
    const [status, message] = await send(path, { [field]: rawMarker }, "1e400");
    expect(status).toBe(400);
    expect(message).toStartWith(`${field}: `);
    expect((await send(path, { [field]: null }))[0]).toBe(200);
  });
});

interface Node {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Node[];
  oneOf?: Node[];
  $ref?: string;
}

/** JSON types that a schema lets in, at its top. */
function typesOf(node: Node): Set<string> {
  const branches = node.anyOf ?? node.oneOf;
  if (branches) return new Set(branches.flatMap((branch) => [...typesOf(branch)]));
  if (node.enum) return new Set(node.enum.map((value) => typeof value));
  if (node.const !== undefined) return new Set([typeof node.const]);
  const types = ([] as string[]).concat(node.type ?? []);
  return new Set(types.map((type) => (type === "integer" ? "number" : type)));
}

const samples: Readonly<Record<string, unknown>> = {
  null: null,
  boolean: true,
  number: 7,
  string: "seven",
  array: [],
  object: {},
};

interface ObjectNode {
  properties?: Record<string, Node>;
  required?: string[];
}

const fields = Object.entries(operations).flatMap(([path, { schema }]) => {
  const root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as ObjectNode & {
    $ref?: string;
    $defs?: Record<string, ObjectNode>;
  };
  const { properties = {}, required = [] } = root.$defs?.[root.$ref?.replace("#/$defs/", "") ?? ""] ?? root;
  return Object.entries(properties).map(([field, node]) => ({
    path: path as Path,
    field,
    types: typesOf(node),
    required: required.includes(field),
  }));
});

describe("wrong types", () => {
  test("covers every parameter with a numeric bound in the table", () => {
    const numeric = fields.filter(({ types, field }) => types.has("number") && !["prompt", "input"].includes(field));
    const listed = numbers.flatMap(([field, paths]) => paths.map((path) => `${path} ${field}`));
    // `seed` has no bound that JSON Schema could state.
    const found = numeric.map(({ path, field }) => `${path} ${field}`);
    expect(listed.sort()).toEqual([...new Set([...found, ...both.map((path) => `${path} seed`)])].sort());
  });

  test.each(fields)("refuses a wrong type of $field on $path", async ({ path, field, types, required }) => {
    let refused = 0;
    for (const [type, value] of Object.entries(samples)) {
      if (types.has(type)) continue;
      const [status, message] = await send(path, { [field]: value });
      expect([type, status]).toEqual([type, 400]);
      expect(message).toStartWith(`${field}: `);
      expect(message).toMatch(/must be /);
      expect(message.length).toBeLessThan(400);
      refused++;
    }
    expect(refused).toBeGreaterThan(1);
    if (required) {
      const [status, message] = await send(path, { [field]: undefined });
      expect(status).toBe(400);
      expect(message).toStartWith(`${field}: is required and must be `);
    }
  });

  test("does not convert numbers in strings, booleans as numbers and the like", async () => {
    for (const changes of [
      { temperature: "1" },
      { max_tokens: "10" },
      { n: true },
      { stream: "true" },
      { stream: 1 },
    ]) {
      expect((await send("/v1/chat/completions", changes))[0]).toBe(400);
    }
  });
});
