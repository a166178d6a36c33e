// Random requests, made after the server's own OpenAPI document and then spoilt: no input makes a 500.
import { expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { addKey } from "./keys.ts";

const formType = "application/x-www-form-urlencoded";
const rounds = long ? 60_000 : 3_000;
const seed = Number(process.env["TEST_SEED"] ?? 20_261_120);

interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  minimum?: number;
  maximum?: number;
}
interface Operation {
  method: string;
  path: string;
  parameters: { name: string; in: string; schema?: Schema }[];
  body: Schema | undefined;
  isForm: boolean;
}
interface Document {
  paths: Record<
    string,
    Record<
      string,
      { parameters?: Operation["parameters"]; requestBody?: { content: Record<string, { schema: Schema }> } }
    >
  >;
  components: { schemas: Record<string, Schema> };
}

/** mulberry32: small, and the same on every machine. */
function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

class Fuzzer {
  readonly #schemas: Record<string, Schema>;
  readonly #random: () => number;
  /** Ids and names that exist or existed. */
  readonly known: string[] = ["upstream-model", "enterprise", "free", "dev", "live"];

  constructor(schemas: Record<string, Schema>, random: () => number) {
    this.#schemas = schemas;
    this.#random = random;
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item;
  }

  learn(id: string): void {
    if (this.known.length < 60) this.known.push(id);
    else this.known[5 + Math.floor(this.#random() * 55)] = id;
  }

  text(): string {
    const junk = [
      "",
      " ",
      "\0",
      "\u202e",
      "\ud800",
      "'",
      '"; DROP TABLE api_keys;--',
      "__proto__",
      "constructor",
      "NaN",
      "null",
      "-1",
      "1e400",
      "../..",
      "%00",
      "😀",
      "x".repeat(300),
      "2026-09-01",
      "0.0.0.0/0",
      "::/0",
      "chat:write",
      "user",
      "text",
    ];
    return this.chance(0.5) ? this.pick(this.known) : this.pick(junk);
  }

  number(): number {
    return this.pick([
      0,
      1,
      -1,
      2,
      60,
      100,
      0.5,
      -0,
      1e-9,
      2 ** 31,
      2 ** 53,
      -(2 ** 53),
      1e15,
      9_000_000,
      1e308,
      1_795_205_000,
      1_795_205_000_000,
    ]);
  }

  junk(depth = 0): unknown {
    const nested = depth < 3 ? [() => [this.junk(depth + 1)], () => ({ [this.text()]: this.junk(depth + 1) })] : [];
    return this.pick([
      () => null,
      () => true,
      () => this.number(),
      () => this.text(),
      () => [],
      () => ({}),
      ...nested,
    ])();
  }

  value(schema: Schema | undefined, depth = 0): unknown {
    if (!schema || depth > 8 || this.chance(0.08)) return this.junk();
    if (schema.$ref) return this.value(this.#schemas[schema.$ref.replace("#/components/schemas/", "")], depth);
    const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
    if (choices) return this.value(this.pick(choices), depth + 1);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum) return this.pick(schema.enum);
    const type = Array.isArray(schema.type) ? this.pick(schema.type) : schema.type;
    switch (type) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return Array.from({ length: Math.floor(this.#random() * 4) }, () => this.value(schema.items, depth + 1));
      case "integer":
      case "number":
        return this.#number(schema, type);
      case "boolean":
        return this.chance(0.5);
      case "string":
        return this.text();
      default:
        return this.junk();
    }
  }

  #number({ minimum = -10, maximum = 1_000 }: Schema, type: string): number {
    if (this.chance(0.3)) return this.number();
    const least = Math.max(minimum, -1e15);
    const found = least + this.#random() * (Math.min(maximum, 1e15) - least);
    return type === "integer" ? Math.round(found) : found;
  }

  #object({ properties = {}, additionalProperties }: Schema, depth: number): Record<string, unknown> {
    const made = Object.entries(properties)
      .filter(() => this.chance(0.6))
      .map(([name, inner]) => [name, this.value(inner, depth + 1)] as const);
    const more = typeof additionalProperties === "object" ? additionalProperties : undefined;
    const extra = more || this.chance(0.05) ? [[this.text(), this.value(more, depth + 1)] as const] : [];
    return Object.fromEntries([...made, ...extra]);
  }
}

async function operationsOf(server: TestServer): Promise<{ operations: Operation[]; schemas: Record<string, Schema> }> {
  const { paths, components } = (await (await server.request("/openapi.json")).json()) as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters,
      body: requestBody?.content["application/json"]?.schema ?? requestBody?.content[formType]?.schema,
      isForm: requestBody?.content[formType] !== undefined,
    })),
  );
  return { operations, schemas: components.schemas };
}

function requestFor(
  { path, parameters, body, isForm }: Operation,
  fuzzer: Fuzzer,
): { target: string; text: string | undefined } {
  const target = path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(fuzzer.text().toWellFormed()) || "x");
  const query = parameters
    .filter((parameter) => parameter.in === "query" && fuzzer.chance(0.4))
    .flatMap(({ name, schema }) => {
      const pair = `${name}=${encodeURIComponent(String(fuzzer.value(schema)).toWellFormed())}`;
      return fuzzer.chance(0.03) ? [pair, pair] : [pair];
    });
  if (fuzzer.chance(0.05)) query.push(`${encodeURIComponent(fuzzer.text().toWellFormed())}=1`);
  const value = body && fuzzer.value(body);
  let text = body && (isForm ? formOf(value) : JSON.stringify(value));
  if (text !== undefined && fuzzer.chance(0.03)) text = text.slice(0, Math.floor(text.length / 2));
  return { target: query.length > 0 ? `${target}?${query.join("&")}` : target, text };
}

function formOf(value: unknown): string {
  const members = typeof value === "object" && value !== null ? Object.entries(value) : [["", value]];
  return members.map((pair) => pair.map((part) => encodeURIComponent(String(part).toWellFormed())).join("=")).join("&");
}

test(`${rounds} random requests to all endpoints: no 500, every refusal in its form, every answer soon`, async () => {
  await using upstream = await startUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const { operations, schemas } = await operationsOf(server);
  expect(operations.length).toBeGreaterThan(20);
  const fuzzer = new Fuzzer(schemas, randomFrom(seed));
  const seen = new Map<string, number>();
  const wrong: string[] = [];
  let key = await addKey(server);
  const one = async () => {
    const operation = fuzzer.pick(operations);
    const { target, text } = requestFor(operation, fuzzer);
    const used = key;
    const started = performance.now();
    const response = await fetch(server.url + target, {
      method: operation.method,
      headers: {
        authorization: `Bearer ${used}`,
        ...(text === undefined ? {} : { "content-type": operation.isForm ? formType : "application/json" }),
      },
      ...(text === undefined ? {} : { body: text }),
    });
    const answer = await response.text();
    const what = `${operation.method} ${target} ${text ?? ""} -> ${response.status} ${answer}`.slice(0, 600);
    seen.set(String(response.status), (seen.get(String(response.status)) ?? 0) + 1);
    if (response.status === 500 || performance.now() - started > 3_000) wrong.push(what);
    if (!response.ok && !isRefusal(answer) && operation.path !== "/readyz") wrong.push(what);
    for (const [, id = ""] of answer.slice(0, 5_000).matchAll(/"id":"((?:key|chatcmpl|acct)[^"]{5,60})"/g)) {
      fuzzer.learn(id);
    }
    // Some of these requests end the key that asks.
    if (response.status === 401 && used === key && operation.path !== "/v1/auth/token") key = await addKey(server);
  };
  for (let round = 0; round < rounds && wrong.length < 5; round += 4) await Promise.all([one(), one(), one(), one()]);
  console.log(
    `seed ${seed}: ${[...seen]
      .sort()
      .map(([status, count]) => `${status} x ${count}`)
      .join(", ")}`,
  );
  expect(wrong).toEqual([]);
  expect(server.logged("request").filter((line) => line["code"] === "internal_error")).toEqual([]);
  // Neither all good nor all bad: both kinds of answers were looked at.
  expect(seen.get("200") ?? 0).toBeGreaterThan(rounds / 20);
  expect(seen.get("400") ?? 0).toBeGreaterThan(rounds / 20);
}, 600_000);

/** As section 7 of the specification has it, or, for OAuth clients, RFC 6749, 5.2. */
function isRefusal(text: string): boolean {
  try {
    const { error, error_description: description } = JSON.parse(text) as {
      error: Record<string, unknown> | string;
      error_description?: unknown;
    };
    if (typeof error === "string") return /^[a-z_]+$/.test(error) && typeof description === "string";
    const values = [error["message"], error["type"], error["code"]];
    return Object.keys(error).length === 3 && values.every((value) => typeof value === "string");
  } catch {
    return false;
  }
}
