// Tests that a stream whose model server breaks off continues at another one as one answer: text, names, end and usage.
import { describe, expect, test } from "bun:test";
import {
  type Break,
  basePrompt,
  breaks,
  ContinuingWorld,
  messages,
  question,
  type ServerPlan,
  turn,
} from "../../../tests/support/continuing-servers.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import { seeded } from "../../../tests/support/seeded.ts";
import { bufferedBytes, NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import type { Operation } from "../../domain/models/operation.ts";

/**
 * An answer that is split as a tokenizer may split it: words with their space, signs, characters of several bytes,
 * JSON.
 */
const tokens = [
  ...["It", " is", " a", ' "g', "ate", '"', ":", "\n", "\n", "{", '"k', "ey", '":', " [", "1", ",", " ", "2", "]}"],
  ...["\n", "Grü", "ße", " an", " 世", "界", " 🚀", "👩‍🚀", "!", "\\", "u", "00", "e9", "\t", "end", "."],
];
const whole = tokens.join("");

const clients: Record<
  string,
  { operation: Operation; body: Record<string, unknown>; textOf: (data: Event) => string }
> = {
  chat: {
    operation: "chat",
    body: { messages, stream_options: { include_usage: true } },
    textOf: ({ choices }) => choices?.[0]?.delta?.content ?? "",
  },
  completion: {
    operation: "completion",
    body: { prompt: question, max_tokens: 1_000, stream_options: { include_usage: true } },
    textOf: ({ choices }) => choices?.[0]?.text ?? "",
  },
  responses: {
    operation: "response",
    body: { input: question },
    textOf: ({ type, delta }) => (type === "response.output_text.delta" && typeof delta === "string" ? delta : ""),
  },
  messages: {
    operation: "message",
    body: { messages, max_tokens: 1_000 },
    textOf: ({ type, delta }) => (type === "content_block_delta" ? ((delta as { text?: string }).text ?? "") : ""),
  },
};

interface Event {
  type?: string;
  id?: string;
  created?: number;
  choices?: { delta?: { role?: string; content?: string }; text?: string; finish_reason: string | null }[];
  delta?: unknown;
  usage?: Record<string, number | boolean> | null;
  response?: { id: string; error?: unknown; usage?: Record<string, number>; headrace?: { continued: number } };
  message?: { id: string };
  headrace?: { continued: number };
  error?: { code: string };
}

function eventsOf(text: string): Event[] {
  const events = text.split("\n\n").flatMap((event) => /^data: (\{.*\})$/m.exec(event)?.[1] ?? []);
  return events.map((data) => JSON.parse(data));
}

/** Returns the prompt and completion tokens that the client's events report, in any format. */
function reportedUsageOf(events: readonly Event[]): [number, number] {
  const reported = events.findLast((event) => event.usage || event.response?.usage);
  const usage = (reported?.usage ?? reported?.response?.usage ?? {}) as Record<string, number>;
  return [
    usage["prompt_tokens"] ?? usage["input_tokens"] ?? -1,
    usage["completion_tokens"] ?? usage["output_tokens"] ?? -1,
  ];
}

/** Counts what an answer must have exactly once. A member that the format lacks counts as once. */
function oneOf(events: readonly Event[]): Record<"ids" | "moments" | "roles" | "ends", number> {
  const chunks = events.filter(({ choices }) => choices);
  const distinct = (values: readonly unknown[]) => new Set(values.filter((value) => value !== undefined)).size || 1;
  const choices = chunks.flatMap((chunk) => chunk.choices ?? []);
  const roles = choices.filter(({ delta }) => delta?.role).length;
  const ends = choices.filter((choice) => choice.finish_reason).length;
  const last = events.filter(({ type }) => type === "response.completed" || type === "message_stop").length;
  return {
    ids: distinct(events.map(({ id, response, message }) => id ?? response?.id ?? message?.id)),
    moments: distinct(chunks.map(({ created }) => created)),
    roles: choices.some(({ text }) => text !== undefined) ? 1 : chunks.length > 0 ? roles : 1,
    ends: ends + last,
  };
}

function lengthOf(name: string): Promise<number> {
  const { operation, body } = clients[name] as (typeof clients)["chat"];
  const world = new ContinuingWorld({ tokens });
  return world.ask(body, operation).then(() => world.served[0]?.length ?? 0);
}

async function joined(name: string, cuts: readonly Break[]) {
  const { operation, body, textOf } = clients[name] as (typeof clients)["chat"];
  const world = new ContinuingWorld({ tokens, breaks: cuts });
  const text = await world.ask(body, operation);
  const events = eventsOf(text);
  return { world, text, events, said: events.map(textOf).join("") };
}

describe.each(Object.keys(clients))("a client of %s", (name) => {
  test("keeps the text, one end and exact usage through 250 random breaks of one or two per answer", async () => {
    const random = seeded(name.length);
    const length = await lengthOf(name);
    let continued = 0;
    for (let round = 0; round < 250; round++) {
      const cuts = Array.from({ length: random() < 0.4 ? 2 : 1 }, () => {
        return { atByte: Math.floor(random() * length), how: breaks[Math.floor(random() * breaks.length)] ?? "reset" };
      });
      const { world, text, events, said } = await joined(name, cuts);
      const where = JSON.stringify({ cuts, text });
      expect([said, where]).toEqual([whole, where]);
      expect([events.filter(({ error, type }) => error || type === "error").length, where]).toEqual([0, where]);
      expect([world.ends.map(({ outcome }) => outcome), world.inFlight]).toEqual([["completed"], 0]);
      continued += world.courses[0]?.continuations?.length ?? 0;
      expect([oneOf(events), where]).toEqual([{ ids: 1, moments: 1, roles: 1, ends: 1 }, where]);
      const [end] = world.ends;
      expect([reportedUsageOf(events), where]).toEqual([[end?.promptTokens ?? 0, end?.completionTokens ?? 0], where]);
      // A server that broke off after its finish reason reported no usage, so the delivered text is counted.
      if (cuts[world.served.length - 1] !== undefined) continue;
      const { promptTokens, completionTokens } = world.computed;
      expect([end?.promptTokens, end?.completionTokens, where]).toEqual([promptTokens, completionTokens, where]);
    }
    expect(continued).toBeGreaterThan(250);
    expect(bufferedBytes.byKind.continued).toBe(0);
  }, 60_000);
});

/** Returns what a client of chat completions gets. */
async function answered(world: ContinuingWorld, body: Record<string, unknown> = { messages }) {
  const text = await world.ask(body);
  const events = eventsOf(text);
  const said = events.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join("");
  return { events, said, asked: world.served.length };
}

/**
 * Returns the length of the role event and of `count` token events, as the servers of these tests send them at first.
 */
async function bytesBehind(count: number, plan: Partial<ServerPlan> = {}): Promise<number> {
  const world = new ContinuingWorld({ tokens: tokens.slice(0, count), ...plan });
  await world.ask({ messages });
  const [served] = world.served;
  const none = new ContinuingWorld({ tokens: [], ...plan });
  await none.ask({ messages });
  const empty = none.served[0]?.length ?? 0;
  // The usage figures differ in their number of digits.
  const more = String(count + 1).length - 1;
  return (served?.length ?? 0) - more - empty + roleBytes;
}

const roleBytes =
  'data: {"id":"own-0","created":1000,"model":"m","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
    .length;

async function cutBehind(count: number, plan: Partial<ServerPlan> = {}): Promise<ContinuingWorld> {
  const atByte = await bytesBehind(count);
  return new ContinuingWorld({ tokens, breaks: [{ atByte, how: "reset" }], ...plan });
}

test("sends the next server the answer so far as prefill, with a reduced token limit", async () => {
  const world = await cutBehind(5);
  await world.ask({ messages, max_tokens: 20, seed: 7, stop: ["zzz"] });
  const [first, second] = world.served;
  expect(second?.name).not.toBe(first?.name ?? "");
  expect(second?.body).toMatchObject({ max_tokens: 15, seed: 7, stop: ["zzz"] });
  expect(second?.body["messages"]).toEqual([...messages, { role: "assistant", content: tokens.slice(0, 5).join("") }]);
  expect(world.ends[0]).toMatchObject({ outcome: "completed", completionTokens: 20 });
});

test("sends the continuation flag to servers that need one", async () => {
  const world = await cutBehind(5, { continues: "flag" });
  expect((await answered(world)).said).toBe(whole);
  expect(world.served[1]?.body).toMatchObject({ add_generation_prompt: false, continue_final_message: true });
});

test("does not continue at a server whose template may trim white space at the end", async () => {
  const world = await cutBehind(8, { continues: "flag" });
  expect(tokens[7]).toBe("\n");
  const { events, said, asked } = await answered(world);
  expect([asked, said, events.at(-1)?.error?.code]).toEqual([1, tokens.slice(0, 8).join(""), "upstream_error"]);
});

test("ends the answer if the break comes after the last allowed token", async () => {
  const world = await cutBehind(6);
  const { events, asked } = await answered(world, { messages, max_tokens: 6 });
  expect([asked, events.at(-1)?.choices?.[0]?.finish_reason]).toEqual([1, "length"]);
  expect(world.ends[0]).toMatchObject({ outcome: "completed", completionTokens: 6, estimated: true });
});

test("tells the client and the trail that another server continued the answer", async () => {
  const world = await cutBehind(3);
  const continued: number[] = [];
  const text = await world.ask({ messages }, "chat", { onContinued: (times) => void continued.push(times) });
  expect(eventsOf(text).flatMap(({ headrace }) => headrace ?? [])).toEqual([{ continued: 1 }]);
  expect(continued).toEqual([1]);
  const [end] = world.ends;
  expect(end?.trail?.map(({ result, upstream }) => [result, upstream])).toEqual([
    ["broke_off", world.served[0]?.name ?? ""],
    ["answered", world.served[1]?.name ?? ""],
  ]);
  expect(end?.upstream).toBe(world.served[1]?.name ?? "");
});

test.each(["responses", "messages"])("tells a client of %s about the continuation in the final event", async (name) => {
  const { operation, body } = clients[name] as (typeof clients)["chat"];
  const world = await cutBehind(3);
  const reported = eventsOf(await world.ask(body, operation)).flatMap(
    ({ headrace, response }) => headrace ?? response?.headrace ?? [],
  );
  expect(reported).toEqual([{ continued: 1 }]);
});

test("counts the tokens of multi-token events exactly if servers count prompts", async () => {
  const pairs = Array.from({ length: Math.ceil(tokens.length / 2) }, (_, at) => ({
    content: tokens.slice(2 * at, 2 * at + 2).join(""),
  }));
  for (const countsTokens of [true, false]) {
    const world = new ContinuingWorld({ tokens, countsTokens, deltas: pairs, breaks: [{ atByte: 900, how: "reset" }] });
    await world.ask({ messages, max_tokens: 100 });
    const delivered = world.served[1]?.begun ?? 0;
    expect(delivered).toBeGreaterThan(3);
    const [end] = world.ends;
    const counted = 2 * basePrompt + delivered;
    if (countsTokens) expect(world.served[1]?.body["max_tokens"]).toBe(100 - delivered);
    if (countsTokens) expect(end).toMatchObject({ promptTokens: counted, estimated: false });
    else expect(end).toMatchObject({ promptTokens: counted + delivered / 2, estimated: true });
  }
});

describe("answers that are not continued", () => {
  const call = { tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "f", arguments: '{"a' } }] };
  const deltas = (first: Record<string, unknown>) => [
    { content: "It" },
    first,
    ...tokens.slice(1).map((content) => ({ content })),
  ];
  test.each([
    ["in a tool call", { deltas: deltas(call) }, {}],
    ["behind a thought", { deltas: deltas({ reasoning_content: "Hm" }) }, {}],
    ["behind a refusal", { deltas: deltas({ refusal: "No" }) }, {}],
    ["with a grammar", {}, { response_format: { type: "json_object" } }],
    ["with log-probabilities", {}, { logprobs: true }],
    ["with penalties, which begin anew", {}, { presence_penalty: 0.5 }],
    ["with members that nobody knows", {}, { guided_regex: "a+" }],
    [
      "with a call that has to come",
      {},
      { tool_choice: "required", tools: [{ type: "function", function: { name: "f" } }] },
    ],
    ["with several choices", {}, { n: 2 }],
    ["at servers of which nobody knows that they can", { continues: undefined }, {}],
    ["of a model that has it off", { policies: { continuation: false } }, {}],
  ] as const)("%s: tells the client that the answer broke off", async (_why, plan, more) => {
    const atByte = (await bytesBehind(6)) + 300;
    const world = new ContinuingWorld({ tokens, breaks: [{ atByte, how: "reset" }], ...(plan as Partial<ServerPlan>) });
    const text = await world.ask({ messages, ...more });
    expect(eventsOf(text).at(-1)?.error?.code).toBe("upstream_error");
    expect(text).not.toContain("[DONE]");
    expect([world.served.length, world.ends[0]?.outcome, world.inFlight]).toEqual([1, "failed", 0]);
  });

  test("does not continue at a server that starts to think again", async () => {
    for (const name of ["chat", "responses"]) {
      const { operation, body } = clients[name] as (typeof clients)["chat"];
      const world = await cutBehind(4, { laterDeltas: [{ reasoning_content: "Hm" }, { content: "It" }] });
      const events = eventsOf(await world.ask(body, operation));
      expect([name, world.served.length, events.some(({ error, response }) => error ?? response?.error)]).toEqual([
        name,
        2,
        true,
      ]);
      expect(world.ends[0]?.outcome).toBe("failed");
    }
  });

  test("does not continue one answer more than three times", async () => {
    const breaksOff = (await bytesBehind(2)) + 10;
    const world = new ContinuingWorld({
      tokens,
      breaks: Array.from({ length: 9 }, () => ({ atByte: breaksOff, how: "close" }) as const),
      servers: ["a", "b", "c", "d", "e", "f"],
    });
    const text = await world.ask({ messages });
    expect(eventsOf(text).at(-1)?.error?.code).toBe("upstream_error");
    expect(world.served.map(({ begun }) => begun)).toEqual([0, 2, 4, 6]);
    expect(world.courses[0]?.continuations).toEqual(["continued", "continued", "continued", "unfit"]);
    expect(world.ends[0]).toMatchObject({ outcome: "failed", completionTokens: 8 });
  });

  test("does not continue when the retry budget is used up", async () => {
    const world = await cutBehind(4);
    const budget = world.router.retryBudget("m");
    while (budget.take());
    const { events } = await answered(world);
    expect([events.at(-1)?.error?.code, world.served.length]).toEqual(["upstream_error", 1]);
    expect(world.ends[0]?.trail?.map(({ result }) => result)).toEqual(["broke_off", "not_retried"]);
  });

  test("does not continue an answer whose text exceeds its memory account", async () => {
    const long = Array.from({ length: 900 }, (_, at) => ` ${at}${"x".repeat(8)}`);
    const world = new ContinuingWorld({ tokens: long, breaks: [{ atByte: 100_000, how: "reset" }] });
    const full = {
      take: (kind: string) => (kind === "continued" ? new NoRoomError("rate_limit_exceeded", "Full.") : undefined),
      release() {},
    };
    const text = await world.ask({ messages }, "chat", { memoryAccount: full });
    expect([eventsOf(text).at(-1)?.error?.code, world.served.length]).toEqual(["upstream_error", 1]);
  });
});

test.each([
  ["the only one", ["a"]],
  ["the only one that is not at rest for another reason", ["a", "b"]],
])("continues at the deployment that broke off if it is %s", async (_which, servers) => {
  const world = await cutBehind(4, { servers });
  const [, other] = world.model.deployments;
  if (other) world.router.failed(other, "deployment");
  expect((await answered(world)).said).toBe(whole);
  expect(world.served.map(({ name }) => name)).toEqual(["a", "a"]);
});

test("does not continue at a deployment that the key may no longer use", async () => {
  const world = await cutBehind(4);
  const principal = principalFor({ modelAccess: { models: [], neverLeaves: true } });
  world.model = { ...world.model, deployments: world.model.deployments.map((one) => ({ ...one, local: true })) };
  const text = world.ask({ messages }, "chat", { principal });
  await until(world);
  world.model = { ...world.model, deployments: world.model.deployments.map((one) => ({ ...one, local: false })) };
  expect(eventsOf(await text).at(-1)?.error?.code).toBe("upstream_error");
  expect(world.served).toHaveLength(1);
});

test("tries no other deployment if the client leaves during the search for one", async () => {
  const world = await cutBehind(4, { servers: ["a", "b"] });
  const text = world.ask({ messages });
  await until(world);
  world.clientGone.cancel();
  await Promise.race([text, Bun.sleep(20)]);
  expect(world.ends.map(({ outcome }) => outcome)).toEqual(["cancelled"]);
  expect(world.inFlight).toBe(0);
  expect(bufferedBytes.byKind.continued).toBe(0);
});

/** Resolves when the first server was asked. */
async function until(world: ContinuingWorld): Promise<void> {
  while (world.served.length === 0) await turn();
}

test("sends an error and tries no deployment if the server shuts down during the search", async () => {
  const world = await cutBehind(4);
  const text = world.ask({ messages });
  await until(world);
  world.deps.stopping.begin();
  expect(await text).toContain("The server is being stopped");
  expect([world.ends.map(({ outcome }) => outcome), world.inFlight]).toEqual([["failed"], 0]);
});

test.each([
  ["n", { messages, n: 2 }, "chat"],
  ["a grammar", { messages, response_format: { type: "json_object" } }, "chat"],
  ["Responses of its own", { input: question }, "response"],
] as const)("restarts a stream of which nothing arrived at another server: with %s", async (_what, body, operation) => {
  const world = new ContinuingWorld({ tokens, breaks: [{ atByte: 0, how: "close" }], continues: undefined });
  const text = await world.ask(body, operation);
  expect(world.served.map(({ begun }) => begun)).toEqual([0, 0]);
  expect(text).not.toContain('"error":{');
  expect(world.ends[0]).toMatchObject({
    outcome: "completed",
    promptTokens: basePrompt,
    completionTokens: tokens.length + 1,
  });
});
