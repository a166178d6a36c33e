// Input from stored conversations, and errors that name missing items.
import { beforeEach, describe, expect, test } from "bun:test";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { GatewayError } from "../base/errors.ts";
import type { ChainFault, MayRead, ResponseOwner, StoredItem } from "../domain/models/stored-response.ts";
import { decodeRequest } from "../requests/decode/decode-request.ts";
import { withKeptInput } from "./kept-input.ts";

const owner: ResponseOwner = { accountId: "acct_1", environment: "live", appId: null, personId: null, madeBy: null };
const limits = { bodyBytes: 2_000, depth: 32, messages: 100 };
const message = (id: string, role: string, text: string): StoredItem => ({
  ...{ id, type: "message", role, status: "completed" },
  content: [{ type: role === "assistant" ? "output_text" : "input_text", text }],
});
const before = [message("msg_1", "user", "Hi"), message("msg_2", "assistant", "Hello")];
const fc = { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" };

/** The store's contents, which each test sets. */
let chain: { items: readonly StoredItem[]; size: number } | ChainFault;
let items: Map<string, StoredItem>;
let held: number;
/** Bytes that may be held before a refusal. */
let room: number;

beforeEach(() => {
  chain = { items: before, size: 100 };
  items = new Map([["fc_1", fc]]);
  held = 0;
  room = Number.POSITIVE_INFINITY;
});

const full = new GatewayError("rate_limit_exceeded", "There is no room.");

/** The replacement reads nothing without permission, as the real store does. */
async function read(...asked: [ResponseOwner, string, number, number, MayRead?]) {
  const [, , , , mayRead] = asked;
  if (!("items" in chain) || !mayRead || mayRead(chain.size)) return chain;
  return { tooLarge: true } as const;
}

const clock = { nowSeconds: () => 1, monotonicMs: () => 0 };
const deps = {
  responses: {
    chain: read,
    items: async (_owner: unknown, ids: readonly string[], _now: number, mayRead?: MayRead) => {
      const found = [...items].filter(([id]) => ids.includes(id));
      return new Map(found.filter(([, item]) => mayRead?.(JSON.stringify(item).length) !== false));
    },
  },
  conversations: { all: read },
  clock,
};

function go(body: Record<string, unknown>, recentItems?: (id: string) => readonly StoredItem[] | undefined) {
  const text = JSON.stringify({ model: "m", ...body });
  const request = decodeRequest("response", ByteSpan.of(Buffer.from(text)), { ...limits, bodyBytes: 100_000 });
  if (!request.namesKept) throw new Error("It names nothing.");
  const hold = (bytes: number) => {
    if (held + bytes > room) return full;
    held += bytes;
    return undefined;
  };
  return withKeptInput(request, deps, { owner, limits, hold, ...(recentItems ? { recentItems } : {}) });
}

const refusalOf = (body: Record<string, unknown>) => go(body).catch((error: unknown) => error as GatewayError);

describe("a request that goes on", () => {
  test("sends the whole conversation as input, without references to stored items", async () => {
    const request = await go({ input: "Go on", previous_response_id: "resp_1", instructions: "Be brief." });
    expect(request.body).toEqual({
      ...{ model: "m", instructions: "Be brief." },
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] },
        before[1],
        { type: "message", role: "user", content: "Go on" },
      ],
    });
    expect(request.goesOn).toMatchObject({
      ...{ previousId: "resp_1", keptAfter: "resp_1", conversationId: null },
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Go on" }] }],
    });
    expect(held).toBe(request.bytes.length);
    expect(request.promptTokens).toBeGreaterThan(4);
  });

  test("puts the items of a conversation before the request's own input", async () => {
    const request = await go({ input: [{ role: "user", content: "Go on" }], conversation: { id: "conv_1" } });
    expect(request.body["input"]).toHaveLength(3);
    expect(request.body["conversation"]).toBeUndefined();
    expect(request.goesOn).toMatchObject({ previousId: null, conversationId: "conv_1" });
  });

  test("replaces item references with the stored items, also references without a type", async () => {
    const output = { type: "function_call_output", call_id: "c", output: "4" };
    const request = await go({ input: [{ type: "item_reference", id: "fc_1" }, output, { id: "fc_1" }] });
    expect(request.body["input"]).toEqual([fc, output, fc]);
    expect(request.goesOn?.input).toMatchObject([fc, output, fc]);
  });

  test("continues a response that only its connection holds, and stores the items of both", async () => {
    const request = await go({ input: "Go on", previous_response_id: "resp_held" }, () => [fc]);
    expect(request.body["input"]).toMatchObject([fc, { role: "user" }]);
    expect(request.goesOn).toMatchObject({ previousId: "resp_held", keptAfter: null, input: [fc, { role: "user" }] });
  });
});

describe("a request is refused", () => {
  test("refuses an unknown previous response with the vendor's words and code", async () => {
    chain = { missing: "resp_1" };
    const error = await refusalOf({ input: "Go on", previous_response_id: "resp_1" });
    expect(error).toMatchObject({ code: "previous_response_not_found", param: "previous_response_id" });
    expect((error as GatewayError).message).toStartWith("Previous response with id `resp_1` not found.");
    chain = { missing: "resp_0" };
    expect(String(await refusalOf({ input: "Go on", previous_response_id: "resp_1" }))).toContain("`resp_0` before it");
  });

  test.each<[object, string, string, ChainFault?]>([
    [{ conversation: "conv_1" }, "not_found", "conversation", { missing: "conv_1" }],
    [{ previous_response_id: "resp_1" }, "invalid_request", "previous_response_id", { unfinished: "resp_1" }],
    [{ previous_response_id: "resp_1", conversation: "conv_1" }, "invalid_request", "conversation"],
    [{ input: [{ type: "item_reference", id: "msg_gone" }] }, "not_found", "input"],
    [{ input: [{ type: "item_reference" }] }, "invalid_request", "input[0].id"],
  ])("refuses a request with %j: %s for %s", async (body, code, param, fault) => {
    if (fault) chain = fault;
    expect(await refusalOf({ input: "Go on", ...body })).toMatchObject({ code, param });
  });

  test("refuses a conversation that exceeds the request size, and says what to do", async () => {
    const asked = { input: "Go on", previous_response_id: "resp_1" };
    chain = { tooLarge: true };
    expect(await refusalOf(asked)).toMatchObject({ code: "request_too_large" });
    chain = { items: [message("msg_1", "user", "x".repeat(2_000))], size: 2_000 };
    expect(String(await refusalOf(asked))).toContain("POST /v1/responses/compact");
    items.set("msg_long", message("msg_long", "user", "x".repeat(2_000)));
    expect(await refusalOf({ input: [{ type: "item_reference", id: "msg_long" }] })).toMatchObject({
      code: "request_too_large",
    });
    expect(held).toBeLessThanOrEqual(2_000);
  });

  test("refuses a request whose stored items or complete body do not fit into memory", async () => {
    room = 99;
    const asked = { input: "Go on", previous_response_id: "resp_1" };
    expect(await refusalOf(asked)).toBe(full);
    expect(await refusalOf({ input: "Go on", conversation: "conv_1" })).toBe(full);
    room = 20;
    expect(await refusalOf({ input: [{ type: "item_reference", id: "fc_1" }] })).toBe(full);
    expect(held).toBe(0);
    // The limit allows the read items, but not the complete request.
    room = 110;
    expect(await refusalOf(asked)).toBe(full);
    expect(held).toBe(100);
  });

  test("refuses more than 2,000 items for a conversation at once", async () => {
    const input = Array.from({ length: 2_001 }, () => ({ role: "user", content: "" }));
    expect(await refusalOf({ input, conversation: "conv_1" })).toMatchObject({
      code: "invalid_request",
      param: "input",
    });
    expect(await refusalOf({ input, previous_response_id: "resp_1" })).toMatchObject({ code: "request_too_large" });
  });
});
