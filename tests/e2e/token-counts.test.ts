// Tokens of a prompt are counted by the model server, whatever format it speaks, with nothing that its count does not take.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

/** Path of the count, and the members that it takes: those of the SDKs' types, and for llama-server any. */
const counts = {
  chat: { path: "/v1/chat/completions/input_tokens", takes: undefined },
  responses: {
    path: "/v1/responses/input_tokens",
    takes: [
      ...["model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"],
      ...["truncation", "conversation", "previous_response_id", "personality"],
    ],
  },
  messages: {
    path: "/v1/messages/count_tokens",
    takes: ["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"],
  },
} as const;
type Api = keyof typeof counts;
const apis = Object.keys(counts) as Api[];

const upstreams = new Map<Api, ScriptedUpstream>();
const clock = manualClock();
let server: TestServer;

beforeAll(async () => {
  for (const api of apis) {
    const { path, takes } = counts[api];
    const upstream = await startUpstream((request, res) => {
      if (request.path !== path) return json(res, 404, { error: { message: "not here" } });
      const unknown = takes && Object.keys(request.body).filter((name) => !(takes as readonly string[]).includes(name));
      if (unknown && unknown.length > 0) {
        return json(res, 400, { error: { message: `${unknown.join()}: Extra inputs are not permitted` } });
      }
      return json(res, 200, { input_tokens: 42 });
    });
    upstream.serves([{ id: api, object: "model" }]);
    upstreams.set(api, upstream);
  }
  const lines = apis.map((api) => `  - { name: ${api}, url: "${upstreams.get(api)?.url}", apis: [${api}] }\n`);
  server = await startHeadrace({ clock, yaml: `upstreams:\n${lines.join("")}` });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  for (const upstream of upstreams.values()) await upstream[Symbol.asyncDispose]();
});

describe.each(apis)("token counts by a model server that speaks only %s", (model) => {
  test("counts the tokens of a Messages prompt", async () => {
    const body = { model, max_tokens: 9, system: "Be brief.", messages: [{ role: "user", content: "Hi" }] };
    const answer = await server.request("/v1/messages/count_tokens", { body });
    expect(await answer.json()).toEqual({ input_tokens: 42 });
  });

  test("counts the tokens of a Responses input", async () => {
    const more = { max_output_tokens: 9, metadata: { a: "b" }, include: ["reasoning.encrypted_content"], user: "u" };
    const body = { model, instructions: "Be brief.", input: "Hi", stream: true, ...more };
    const answer = await server.request("/v1/responses/input_tokens", { body });
    expect(await answer.json()).toEqual({ object: "response.input_tokens", input_tokens: 42 });
  });
});

describe("token counts of a key", () => {
  const body = { model: "messages", messages: [{ role: "user", content: "Hi" }] };

  async function keyOf(maker?: string): Promise<string> {
    const settings = {
      name: "counting",
      scopes: ["chat:write", "keys:manage"],
      rate_limit: 1,
      rate_limit_window: 86_400,
    };
    const headers = maker === undefined ? {} : { authorization: `Bearer ${maker}` };
    const response = await server.request("/v1/keys", { body: settings, headers });
    return ((await response.json()) as { key: string }).key;
  }

  /** Sends so many counts at once; returns how many of them a model server made. */
  async function countedOf(times: number, keys: readonly string[]): Promise<number> {
    const asked = upstreams.get("messages")?.requests ?? [];
    const before = asked.length;
    const answers = await Promise.all(
      Array.from({ length: times }, async (_, i) => {
        const headers = { authorization: `Bearer ${keys[i % keys.length]}` };
        const response = await server.request("/v1/messages/count_tokens", { body, headers });
        expect(response.status).toBe(200);
        return (await response.json()) as { estimated?: true };
      }),
    );
    const counted = answers.filter(({ estimated }) => estimated === undefined).length;
    expect(asked.length - before).toBe(counted);
    return counted;
  }

  test("sends 300 token counts of a key to a model server at once, and estimates the others", async () => {
    clock.advance(60_000);
    expect(await countedOf(310, [await keyOf()])).toBe(300);
  });

  test("sends 1,200 token counts of an account's keys to a model server at once, and estimates the others", async () => {
    const keys: string[] = [];
    for (let i = 0; i < 4; i++) keys.push(await keyOf(keys[0]));
    clock.advance(60_000);
    expect(await countedOf(1_210, keys)).toBe(1_200);
  });
});
