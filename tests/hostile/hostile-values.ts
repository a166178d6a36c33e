// Values for fast-check: what a schema allows, and then spoilt: wrong types, huge, deep, unicode, U+0000, inherited names.
import fc from "fast-check";
import type { Schema } from "./operations.ts";

/** Stands for text that goes into the JSON as it is: `1e400`, a hundred thousand brackets. */
export const rawly = (json: string) => `‹raw:${json}›`;
/** Stands for the id of something that exists while the request is made, whichever it is then. */
export const existing = (kind: string) => `‹id:${kind}›`;

const raws = /"‹raw:((?:[^›])*)›"/g;
const ids = /‹id:(\w+)›/g;

/** Kinds of which a test has one of each. */
export const existingKinds = "key chat account app session member invitation node upstream tier person passkey".split(
  " ",
);

const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "length", "then"];

/** Texts that mean something to some reader of texts, and nothing here. */
export const tellingTexts: readonly string[] = [
  ...["", " ", "\0", "a\0b", "\u202e", "\ufeff", "\ud800", "\udfff x", "'", '"', "\\", "`", "\r\n", "a\r\nx: y"],
  ...['"; DROP TABLE api_keys;--', "' OR 1=1 --", "%", "_", "%00", "{{7*7}}", "<script>", "../..", "..%2f", "//", "."],
  ...[
    "NaN",
    "null",
    "undefined",
    "true",
    "-1",
    "0",
    "1e400",
    "0x10",
    "9007199254740993",
    "1,2",
    "[]",
    "{}",
    "W10",
    "bnVsbA",
  ],
  ...["2026-09-01", "2026-02-30", "9999-12-31T23:59:60Z", "0.0.0.0/0", "::/0", "fe80::1%eth0", "1.2.3.4/33"],
  ...[
    "chat:write",
    "admin:manage",
    "user",
    "*",
    "a@b.example",
    "@",
    "http://",
    "javascript:alert(1)",
    "ﬀ",
    "İ",
    "👨‍👩‍👧",
  ],
  ...names,
];

const oddTexts: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...tellingTexts),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom(65, 257, 1_025, 70_000).map((length) => "x".repeat(length)),
);

const oddNumbers = fc.constantFrom<number | string>(
  ...[0, -0, 1, -1, 2, 0.5, 1e-9, 60, 2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 53), 2 ** 63, 1e15, 1e21, 1e308, 1_795_205_000],
  ...["1e400", "-1e400", "9007199254740993", "1E+2", "0.1e-400", `1${"0".repeat(400)}`].map(rawly),
);

/** Values in the place of any other. */
export const tellingValues: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, "", "\0", "x".repeat(70_000), [], {}, [null], [[]], { a: { b: 1 } }],
  ...["1e400", "9007199254740993", '{"__proto__":{"a":1}}', '{"a":1,"a":2}', deep(70), deep(5_000), "NaN", "[1,]"].map(
    rawly,
  ),
];

/** What no schema asks for. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  { arbitrary: oddTexts, weight: 4 },
  { arbitrary: oddNumbers, weight: 3 },
  fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null], { "": null }),
  fc.constantFrom(20, 70, 5_000).map((levels) => rawly(deep(levels))),
  fc.constantFrom(...names).map((name) => rawly(`{"${name}":{"${name}":1}}`)),
  fc.constant(rawly('{"a":1,"a":2}')),
  fc.constantFrom("NaN", "Infinity", "undefined", "01", "'x'", "", "[1,]", "{,}").map(rawly),
  fc.constantFrom(130, 3_000).map((count) => Array.from({ length: count }, () => "x")),
  fc.jsonValue({ maxDepth: 3 }),
);

/** By the name of a field or parameter: what there is, as no schema says which models exist. */
const telling: Readonly<Record<string, readonly unknown[]>> = {
  model: ["our-model", "upstream-model"],
  tier: ["enterprise", "free", existing("tier")],
  scopes: [["chat:write"], ["models:read", "usage:read"]],
  email: ["ada@example.com"],
  redirect_uris: [["https://notes.example/callback"]],
  client_id: [existing("app"), existing("app"), "headrace-cli"],
  client_secret: [existing("client_secret")],
  api_key: [existing("secret_key")],
  account_id: [existing("account")],
  account: [existing("account")],
  key: [existing("key")],
  target: [existing("key")],
  app: [existing("app")],
  expires_at: [2_000_000_000],
  start: ["2026-11-01", 1_795_000_000],
  end: ["2026-11-30", 1_796_000_000],
  allowed_ips: [["127.0.0.1", "10.0.0.0/8"]],
  grant_type: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
  url: [existing("url")],
  role: ["member", "admin", "owner", "user"],
  token: [existing("join")],
  public_key: ["A".repeat(43)],
  name: ["Of a property test"],
};

export class SchemaValues {
  readonly #resolve: (reference: string) => Schema;
  readonly #known = new Map<Schema, fc.Arbitrary<unknown>[]>();

  constructor(resolve: (reference: string) => Schema) {
    this.#resolve = resolve;
  }

  /** What the schema allows, as far as it says; `name` is that of the field. */
  of(schema: Schema, name = "", depth = 0): fc.Arbitrary<unknown> {
    const likely = Object.hasOwn(telling, name) ? telling[name] : undefined;
    const allowed = this.#memoised(schema, depth);
    return likely ? fc.oneof({ arbitrary: fc.constantFrom(...likely), weight: 4 }, allowed) : allowed;
  }

  #memoised(schema: Schema, depth: number): fc.Arbitrary<unknown> {
    const byDepth = this.#known.get(schema) ?? [];
    this.#known.set(schema, byDepth);
    byDepth[depth] ??= this.#made(schema, depth);
    return byDepth[depth];
  }

  #made(schema: Schema, depth: number): fc.Arbitrary<unknown> {
    if (depth > 7) return fc.constant(null);
    if (schema.$ref) return this.of(this.#resolve(schema.$ref), "", depth);
    const options = schema.anyOf ?? schema.oneOf;
    if (options) return fc.oneof(...options.map((option) => this.of(option, "", depth + 1)));
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type) => this.#typed(schema, type, depth)));
    return this.#typed(schema, String(schema.type), depth);
  }

  #typed(schema: Schema, type: string, depth: number): fc.Arbitrary<unknown> {
    switch (type) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return fc.array(this.of(schema.items ?? {}, "", depth + 1), {
          minLength: Math.min(schema.minItems ?? 0, 3),
          maxLength: 3,
        });
      case "integer":
        return fc.integer({ min: Math.max(schema.minimum ?? -5, -1e9), max: Math.min(schema.maximum ?? 1e6, 1e9) });
      case "number":
        return fc.double({
          min: Math.max(schema.minimum ?? -5, -1e9),
          max: Math.min(schema.maximum ?? 1e6, 1e9),
          noNaN: true,
        });
      case "boolean":
        return fc.boolean();
      case "string":
        return this.#text(schema);
      case "null":
        return fc.constant(null);
      default:
        return fc.jsonValue({ maxDepth: 2 });
    }
  }

  #text({ minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
    const plain = fc.string({ minLength: Math.min(minLength, 100), maxLength: Math.min(maxLength, minLength + 20) });
    return fc.oneof({ arbitrary: plain, weight: 3 }, fc.constantFrom(...existingKinds.map(existing)));
  }

  #object({ properties = {}, required = [], additionalProperties }: Schema, depth: number): fc.Arbitrary<unknown> {
    const members = Object.fromEntries(
      Object.entries(properties).map(([name, inner]) => [name, this.of(inner, name, depth + 1)] as const),
    );
    // Few of the optional ones at a time: of a request with all of them hardly any would be allowed.
    const optional = Object.keys(members).filter((name) => !required.includes(name));
    const chosen = fc.subarray(optional, { maxLength: Math.min(optional.length, 4) });
    const more =
      typeof additionalProperties === "object"
        ? fc.dictionary(fc.string({ maxLength: 8 }), this.of(additionalProperties, "", depth + 1), { maxKeys: 2 })
        : fc.constant({});
    return fc
      .tuple(chosen, more)
      .chain(([names, extra]) =>
        fc
          .record(Object.fromEntries([...required, ...names].map((name) => [name, members[name] ?? fc.constant(null)])))
          .map((made) => ({ ...extra, ...made })),
      );
  }
}

export interface Change {
  /** Which of the places in the value, counted on from the first again. */
  place: number;
  how: "replace" | "leave out" | "add" | "repeat";
  value: unknown;
}

const change: fc.Arbitrary<Change> = fc.record({
  place: fc.nat({ max: 60 }),
  how: fc.constantFrom("replace", "replace", "replace", "leave out", "add", "repeat"),
  value: junk,
});

/** Half of the time nothing is changed. */
export const changes = fc.oneof(fc.constant([]), fc.array(change, { minLength: 1, maxLength: 2 }));

type Container = Record<string, unknown> | unknown[];

/** The value with the changes, which it does not share parts with. */
export function changed(value: unknown, all: readonly Change[]): unknown {
  const root = { value: structuredClone(value) };
  for (const one of all) {
    const places = placesIn(root);
    const place = places[one.place % places.length];
    if (place) apply(one, ...place);
  }
  return root.value;
}

function placesIn(container: object): (readonly [Container, string])[] {
  return Object.entries(container).flatMap(([name, member]) => [
    [container as Container, name] as const,
    ...(typeof member === "object" && member !== null ? placesIn(member) : []),
  ]);
}

function apply({ how, value: shared }: Change, container: Container, name: string): void {
  // The next change may go into it.
  const value = structuredClone(shared);
  const members = container as Record<string, unknown>;
  const member = members[name];
  if (how === "leave out") delete members[name];
  else if (how === "replace") members[name] = value;
  else if (how === "repeat") members[name] = [member, member];
  else if (typeof member === "object" && member !== null && !Array.isArray(member)) {
    Object.defineProperty(member, typeof value === "string" && !value.startsWith("‹") ? value : "__proto__", {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else members[name] = [member, value];
}

/** The JSON text of a value, raw parts as they are. `idOf` gives the id of what exists. */
export function jsonText(value: unknown, idOf: (kind: string) => string): string {
  const json = JSON.stringify(value) ?? "";
  return withIds(
    json.replace(raws, (_, raw: string) => JSON.parse(`"${raw}"`) as string),
    idOf,
  );
}

/** The text of a value in a query, a path or a form. */
export function plainText(value: unknown, idOf: (kind: string) => string): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return withIds(text.replace(/^‹raw:(.*)›$/s, "$1"), idOf).toWellFormed();
}

function withIds(text: string, idOf: (kind: string) => string): string {
  return text.replace(ids, (_, kind: string) => idOf(kind));
}

/** What stands in a path or a query instead of what belongs there. */
export const oddText = oddTexts;
/** Any of what exists. */
export const anyExisting = fc.constantFrom(...existingKinds.map(existing));
