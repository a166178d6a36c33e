// Which responses are kept, with what of their requests, and when their clients may go on.
import { beforeEach, describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { keyRecordFor, principalFor } from "../../../tests/support/principal.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { StoredResponse } from "../../domain/models/stored-response.ts";
import type { UsageOutcome } from "../../domain/usage/usage.ts";
import { recorderFor } from "./recorder.ts";

const maker = keyRecordFor({ id: "key_maker", limitId: "lim_maker" });
const principal = principalFor({ keys: [keyRecordFor(), maker], appId: "app_1" });
const chatWriter = { retentionDays: 0, add() {}, notStored() {}, flush: async () => {} };
const stored: StoredResponse[] = [];
const lost: string[] = [];
let isTaken = true;
const responseKeeper = {
  retentionDays: 7,
  requireRoom: async () => {},
  keep: async (response: StoredResponse) => {
    stored.push(response);
    return isTaken;
  },
  notStored: (account: string, reason: string) => void lost.push(`${account} ${reason}`),
};

beforeEach(() => {
  stored.length = 0;
  lost.length = 0;
});

function recorderOf(body: Record<string, unknown>) {
  const request = decodedRequest({ input: "Hi", ...body }, "response");
  const recorder = recorderFor({ principal, request, memoryAccount: bufferedBytes.visitors }, "m", {
    chatWriter,
    responseKeeper,
  });
  return { request, recorder };
}

const endOf = (outcome: UsageOutcome) => ({
  ...{ createdAt: 1_800_000_000, outcome },
  usage: { promptTokens: 3, completionTokens: 4, estimated: true },
});
const response = { id: "resp_1", object: "response", status: "completed", output: [{ id: "msg_1", type: "message" }] };
const lastEvent = (status: string) =>
  `event: response.${status}\ndata: ${JSON.stringify({ type: `response.${status}`, response: { ...response, status } })}\n\n`;

describe("what the client is told of being stored", () => {
  const claims = { ...response, store: true, conversation: { id: "conv_1" }, metadata: { store: "true" } };
  const truth = { ...claims, store: false, conversation: null };
  const event = (said: object) =>
    `: beat\n\nevent: response.completed\ndata: ${JSON.stringify({ type: "response.completed", response: said, store: 1 })}\n\n`;

  test.each([
    ["whole", JSON.stringify(claims), JSON.stringify(truth)],
    ["the last events of a stream", event(claims), event(truth)],
    ["an error in place of a response", "event: error\ndata: {}\n\n", "event: error\ndata: {}\n\n"],
  ])("is taken back if the store does not take it: %s", async (_, said, told) => {
    const { recorder } = recorderOf({ store: true });
    recorder?.addWhole(JSON.stringify(claims));
    isTaken = false;
    await recorder?.keep(endOf("completed"));
    expect(recorder?.truthful(said)).toBe(told);
    isTaken = true;
    await recorder?.keep(endOf("completed"));
    expect(recorder?.truthful(said)).toBe(said);
  });

  test("is taken back if the answer is too large to be stored", async () => {
    const { recorder } = recorderOf({ store: true });
    recorder?.addWhole("x".repeat(10_000_001));
    await recorder?.keep(endOf("completed"));
    expect(recorder?.truthful(JSON.stringify(claims))).toBe(JSON.stringify(truth));
  });
});

test("a whole response is kept as it was answered, with its request's items and who made it", async () => {
  const { recorder } = recorderOf({});
  recorder?.addWhole(JSON.stringify(response));
  await recorder?.keep(endOf("completed"));
  expect(stored).toMatchObject([
    {
      ...{ id: "resp_1", accountId: "acct_1", keyId: "key_1", appId: "app_1", personId: null, madeBy: "lim_maker" },
      ...{ model: "m", status: "completed", createdAt: 1_800_000_000, expiresAt: 1_800_000_000 + 7 * 86_400 },
      ...{ previousId: null, conversationId: null, background: false, response },
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    },
  ]);
});

test("a response that goes on is kept with its own items alone, and with what it goes on from", async () => {
  const { recorder, request } = recorderOf({ input: [{ role: "user", content: "before and after" }] });
  const input = [{ id: "msg_own", type: "message" }];
  request.goesOn = { previousId: "resp_0", keptAfter: "resp_0", conversationId: null, input };
  recorder?.addWhole(JSON.stringify(response));
  await recorder?.keep(endOf("completed"));
  expect(stored).toMatchObject([{ previousId: "resp_0", conversationId: null, input }]);
});

test.each(["completed", "incomplete", "failed"] as const)(
  "a stream that ends as %s is kept as that",
  async (status) => {
    const { recorder } = recorderOf({ stream: true });
    expect(recorder?.wantsAllEvents).toBe(false);
    recorder?.add(lastEvent(status));
    await recorder?.keep(endOf(status === "failed" ? "failed" : "completed"));
    expect(stored).toMatchObject([{ id: "resp_1", status }]);
  },
);

test("a response whose server does not say how it ended is kept as one that came to its end", async () => {
  const { recorder } = recorderOf({});
  recorder?.addWhole(JSON.stringify({ ...response, status: "done" }));
  await recorder?.keep(endOf("completed"));
  expect(stored).toMatchObject([{ id: "resp_1", status: "completed" }]);
});

test("what failed before there was a response is not kept, and nobody is told that it should have been", () => {
  const { recorder } = recorderOf({ stream: true });
  recorder?.add('event: error\ndata: {"type":"error"}\n\n');
  expect(recorder?.keep(endOf("failed"))).toBeUndefined();
  expect([stored, lost]).toEqual([[], []]);
});

test("an answer that is too long to be kept is delivered all the same, which is logged", () => {
  const { recorder } = recorderOf({});
  recorder?.addWhole(" ".repeat(10_000_000) + JSON.stringify(response));
  expect(recorder?.keep(endOf("completed"))).toBeUndefined();
  expect([stored, lost]).toEqual([[], ["acct_1 too_large"]]);
});

test("nothing is recorded of a request that does not want to be kept", () => {
  expect(recorderOf({ store: false }).recorder).toBeUndefined();
  expect(recorderOf({ store: null }).recorder).toBeDefined();
});
