// An answer of an engine that speaks the client's format stays as it is, but for what is ours to say.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { AnswerNames, Serving } from "../answer.ts";
import { dialects } from "../dialects.ts";

const engine = { name: "e", redact: (text: string) => text, models: async () => [] } as never;
const serving: Serving = { model: { id: "m", context: undefined }, deployment: { engine } };
const answer = {
  ...{ id: "resp_up", object: "response", status: "completed", model: "m", output: [] },
  ...{ store: false, previous_response_id: null, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
};

function read(told: object, names: Partial<AnswerNames>) {
  const { response } = dialects;
  const request = decodedRequest({ input: "Hi" }, "response");
  const bytes = ByteSpan.of(Buffer.from(JSON.stringify(told, null, 1)));
  return response.readAnswer(bytes, request, serving, { id: "resp_own", created: 1, ownId: false, ...names });
}

const membersOf = (isKept: boolean, from?: { previousId: string | null; conversationId: string | null }) =>
  dialects.response.kept?.members(isKept, from);

test("an answer that says what we would say goes on byte for byte", () => {
  expect(read(answer, { members: membersOf(false) }).text).toBe(JSON.stringify(answer, null, 1));
});

test("an answer that is kept has our id, and says so and what it goes on from", () => {
  const members = membersOf(true, { previousId: "resp_0", conversationId: null });
  const own = JSON.parse(read(answer, { ownId: true, members }).text) as object;
  expect(own).toEqual({ ...answer, id: "resp_own", store: true, previous_response_id: "resp_0" });
  const conversation = membersOf(true, { previousId: null, conversationId: "conv_1" });
  expect(JSON.parse(read(answer, { ownId: true, members: conversation }).text)).toMatchObject({
    conversation: { id: "conv_1" },
  });
});

test("what an engine makes up of what it keeps, or names of a conversation of its own, does not reach the client", () => {
  const told = { ...answer, store: true, previous_response_id: "resp_theirs", conversation: { id: "conv_theirs" } };
  expect(JSON.parse(read(told, { members: membersOf(false) }).text)).toEqual({ ...answer, conversation: null });
});
