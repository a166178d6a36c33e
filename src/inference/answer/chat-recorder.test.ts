// Tests which chats are recorded and what is stored of them.

import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { keyRecordFor, principalFor } from "../../../tests/support/principal.ts";
import { BufferedBytes, bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ChatWriter, NewChat } from "../../domain/models/stored-chat.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { dialects } from "../../requests/dialects/dialects.ts";
import { recorderFor, wantsStoring } from "./recorder.ts";

const createdAt = 1_800_000_000;
const end = {
  createdAt,
  usage: { promptTokens: 3, completionTokens: 4, estimated: true },
  outcome: "completed" as const,
};
const principal = principalFor({
  keys: [keyRecordFor({ environment: "test" })],
  environment: "test",
  appId: "app_1",
});

function setUp(retentionDays = 30, memoryAccount: MemoryAccount = bufferedBytes.visitors) {
  const stored: NewChat[] = [];
  const lost: string[] = [];
  const writer: ChatWriter = {
    retentionDays,
    add: (chat) => void stored.push(chat),
    notStored: (account, reason) => void lost.push(`${account} ${reason}`),
    flush: async () => {},
  };
  const record = (body: Record<string, unknown>, operation: DecodedRequest["operation"] = "chat") => {
    const full = { model: "m", messages: [{ role: "user", content: "Hi" }], ...body };
    const responseKeeper = { retentionDays, requireRoom: async () => {}, keep: async () => true, notStored() {} };
    return recorderFor({ principal, request: decodedRequest(full, operation), memoryAccount }, "m", {
      ...{ chatWriter: writer, responseKeeper },
    });
  };
  return { stored, lost, record };
}

function chunk(delta: Record<string, unknown>): string {
  return `data: ${JSON.stringify({ id: "chatcmpl-1", created: 5, model: "m", choices: [{ index: 0, delta }] })}\n\n`;
}

const whole = JSON.stringify({ id: "chatcmpl-1", object: "chat.completion", choices: [{ index: 0 }], usage: {} });

test("does not store an answer whose recording exceeds the key's memory share, and releases its bytes", () => {
  const ledger = new BufferedBytes(300_000);
  const { stored, lost, record } = setUp(30, ledger.visitors);
  const recorder = record({ store: true });
  const add = () => recorder?.add(chunk({ content: "x".repeat(70_000) }));
  add();
  expect(ledger.byKind.chats).toBeGreaterThanOrEqual(70_000);
  add();
  expect(ledger.byKind.chats).toBe(0);
  recorder?.keep(end);
  expect([stored, lost]).toEqual([[], ["acct_1 no_room"]]);
});

describe("which chats are stored", () => {
  const on = { storeChats: true };
  const off = { storeChats: false };
  const { chat, response } = dialects;

  test("stores a chat by the request's `store`, or else by the account's setting", () => {
    expect(wantsStoring(off, { store: true, dialect: chat }, 30)).toBe(true);
    expect(wantsStoring(on, { store: false, dialect: chat }, 30)).toBe(false);
    expect(wantsStoring(off, { store: undefined, dialect: chat }, 30)).toBe(false);
    expect(wantsStoring(on, { store: undefined, dialect: chat }, 30)).toBe(true);
    expect(wantsStoring(on, { store: null, dialect: chat }, 30)).toBe(true);
  });

  test("stores a response unless its request says otherwise, whatever the account's setting for chats", () => {
    expect(wantsStoring(off, { store: undefined, dialect: response }, 30)).toBe(true);
    expect(wantsStoring(off, { store: null, dialect: response }, 30)).toBe(true);
    expect(wantsStoring(on, { store: false, dialect: response }, 30)).toBe(false);
    expect(wantsStoring(on, { store: true, dialect: response }, 0)).toBe(false);
  });

  test("stores nothing when the retention is 0 days", () => {
    expect(wantsStoring(on, { store: true, dialect: chat }, 0)).toBe(false);
    expect(setUp(0).record({ store: true })).toBeUndefined();
  });

  test("stores only chat completions, no legacy ones and no embeddings", () => {
    const { record } = setUp();
    expect(record({ store: true }, "completion")).toBeUndefined();
    expect(record({ store: true }, "embedding")).toBeUndefined();
    expect(record({ store: true })).toBeDefined();
    expect(record({})).toBeUndefined();
  });
});

test("stores a whole answer unchanged for the retention period, with messages and parameters apart", () => {
  const { stored, record } = setUp(7);
  const messages = [{ role: "user", content: [{ type: "text", text: "Hi" }] }];
  const recorder = record({
    messages,
    temperature: 0.5,
    unknown: { x: 1 },
    stream: false,
    stream_options: null,
    store: true,
    metadata: { topic: "t" },
  });
  recorder?.addWhole(whole);
  recorder?.keep(end);
  expect(stored).toEqual([
    {
      id: "chatcmpl-1",
      accountId: "acct_1",
      environment: "test",
      keyId: "key_1",
      appId: "app_1",
      personId: null,
      model: "m",
      createdAt,
      expiresAt: createdAt + 7 * 86_400,
      metadata: { topic: "t" },
      parameters: { temperature: 0.5, unknown: { x: 1 } },
      completion: JSON.parse(whole),
      messages,
    },
  ]);
});

test("stores a stream as one completion, however its events were split", () => {
  const { stored, record } = setUp();
  const recorder = record({ store: true, stream: true });
  recorder?.add(chunk({ role: "assistant", content: "Hel" }) + chunk({ content: "lo\n\n" }));
  recorder?.add(chunk({ content: "data: {" }));
  recorder?.add("data: [DONE]\n\n");
  recorder?.keep(end);
  expect(stored[0]).toMatchObject({
    id: "chatcmpl-1",
    metadata: {},
    completion: {
      object: "chat.completion",
      choices: [{ message: { content: "Hello\n\ndata: {" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    },
  });
});

test("stores no answer that failed or was cancelled", () => {
  const { stored, record } = setUp();
  record({ store: true })?.add(chunk({ content: "Hel" }));
  expect(stored).toEqual([]);
});

test("does not store an answer above ten million characters, and reports the loss", () => {
  const { stored, lost, record } = setUp();
  const streamed = record({ store: true });
  for (let i = 0; i < 11; i++) streamed?.add(chunk({ content: "x".repeat(1_000_000) }));
  streamed?.keep(end);
  const answered = record({ store: true });
  answered?.addWhole(" ".repeat(10_000_000) + whole);
  answered?.keep(end);
  const empty = record({ store: true });
  empty?.keep(end);
  expect(stored).toEqual([]);
  expect(lost).toEqual(["acct_1 too_large", "acct_1 too_large", "acct_1 empty"]);
});

test("ignores an answer that is not a valid completion", () => {
  const { stored, lost, record } = setUp();
  const recorder = record({ store: true });
  for (const index of [{ toString: 1, valueOf: 1 }, 0]) {
    recorder?.add(`data: ${JSON.stringify({ id: "c", choices: [{ index, delta: { content: "x" } }] })}\n\n`);
  }
  recorder?.keep(end);
  expect([stored, lost]).toEqual([[], ["acct_1 unreadable"]]);
});

test("refuses metadata beyond the limits before sending the request, naming the field", () => {
  const { record } = setUp();
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, "v"]));
  expect(() => record({ store: true, metadata: many })).toThrow("metadata: must have at most 16 names (got 17).");
  expect(record({ store: true, metadata: null })).toBeDefined();
  expect(record({ metadata: many })).toBeUndefined();
});
