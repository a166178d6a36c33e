// Tests which responses are stored, with which items of their requests, and when their clients get the end.
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

describe("the `store` member that the client receives", () => {
  const claims = { ...response, store: true, conversation: { id: "conv_1" }, metadata: { store: "true" } };
  const truth = { ...claims, store: false, conversation: null };
  const event = (said: object) =>
    `: beat\n\nevent: response.completed\ndata: ${JSON.stringify({ type: "response.completed", response: said, store: 1 })}\n\n`;

  test.each([
    ["whole", JSON.stringify(claims), JSON.stringify(truth)],
    ["the last events of a stream", event(claims), event(truth)],
    ["an error in place of a response", "event: error\ndata: {}\n\n", "event: error\ndata: {}\n\n"],
  ])("corrects `store` in the answer if the store does not take the response: %s", async (_, said, reported) => {
    const { recorder } = recorderOf({ store: true });
    recorder?.addWhole(JSON.stringify(claims));
    isTaken = false;
    await recorder?.keep(endOf("completed"));
    expect(recorder?.truthful(said)).toBe(reported);
    isTaken = true;
    await recorder?.keep(endOf("completed"));
    expect(recorder?.truthful(said)).toBe(said);
  });

  test("corrects `store` in the answer if the response is too large to store", async () => {
    const { recorder } = recorderOf({ store: true });
    recorder?.addWhole("x".repeat(10_000_001));
    await recorder?.keep(endOf("completed"));
    expect(recorder?.truthful(JSON.stringify(claims))).toBe(JSON.stringify(truth));
  });
});

test("stores a whole response as answered, with its request's items and its owner", async () => {
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

test("stores a continued response with its own items and the id of the previous response", async () => {
  const { recorder, request } = recorderOf({ input: [{ role: "user", content: "before and after" }] });
  const input = [{ id: "msg_own", type: "message" }];
  request.goesOn = { previousId: "resp_0", keptAfter: "resp_0", conversationId: null, input };
  recorder?.addWhole(JSON.stringify(response));
  await recorder?.keep(endOf("completed"));
  expect(stored).toMatchObject([{ previousId: "resp_0", conversationId: null, input }]);
});

test.each(["completed", "incomplete", "failed"] as const)(
  "stores a stream that ends as %s with that status",
  async (status) => {
    const { recorder } = recorderOf({ stream: true });
    expect(recorder?.wantsAllEvents).toBe(false);
    recorder?.add(lastEvent(status));
    await recorder?.keep(endOf(status === "failed" ? "failed" : "completed"));
    expect(stored).toMatchObject([{ id: "resp_1", status }]);
  },
);

test("stores a response of unknown status as completed", async () => {
  const { recorder } = recorderOf({});
  recorder?.addWhole(JSON.stringify({ ...response, status: "done" }));
  await recorder?.keep(endOf("completed"));
  expect(stored).toMatchObject([{ id: "resp_1", status: "completed" }]);
});

test("neither stores nor reports as lost a request that failed before its response began", () => {
  const { recorder } = recorderOf({ stream: true });
  recorder?.add('event: error\ndata: {"type":"error"}\n\n');
  expect(recorder?.keep(endOf("failed"))).toBeUndefined();
  expect([stored, lost]).toEqual([[], []]);
});

test("delivers an answer that is too long to store, and logs that", () => {
  const { recorder } = recorderOf({});
  recorder?.addWhole(" ".repeat(10_000_000) + JSON.stringify(response));
  expect(recorder?.keep(endOf("completed"))).toBeUndefined();
  expect([stored, lost]).toEqual([[], ["acct_1 too_large"]]);
});

test("records nothing for a request that is not to be stored", () => {
  expect(recorderOf({ store: false }).recorder).toBeUndefined();
  expect(recorderOf({ store: null }).recorder).toBeDefined();
});
