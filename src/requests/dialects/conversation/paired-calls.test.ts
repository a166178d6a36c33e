// Tests that every call is followed by its result, and that nothing a client sent is lost.
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { AnswerPart, ConversationMessage, ResultTurn } from "./conversation.ts";
import { pairedCalls } from "./paired-calls.ts";

function calling(...ids: string[]): ConversationMessage {
  const parts = ids.map((callId): AnswerPart => ({ type: "call", callId, kind: "function", name: "f", input: "{}" }));
  return { role: "assistant", parts, place: "messages[1]" };
}

function result(callId: string, text = `result of ${callId}`): ResultTurn {
  return { role: "tool", callId, kind: "function", parts: [{ type: "text", text }], place: "messages[2]" };
}

const user: ConversationMessage = { role: "user", parts: [{ type: "text", text: "Go on." }], place: "messages[3]" };

/** Returns a short form of the turns: ids of calls, results, and texts. */
function short(turns: readonly ConversationMessage[]): string[] {
  return turns.map((turn) => {
    const texts = turn.parts.map((part) =>
      part.type === "call" ? part.callId : part.type === "text" ? part.text : part.type,
    );
    return `${turn.role}: ${texts.join(" ")}`;
  });
}

test("leaves ordered turns unchanged", () => {
  const turns = [user, calling("a", "b"), result("a"), result("b"), user, calling("c"), result("c")];
  expect(pairedCalls(turns)).toEqual(turns);
});

test("moves late or reordered results up behind their calls", () => {
  expect(short(pairedCalls([calling("a", "b"), user, result("b"), result("a")]))).toEqual([
    "assistant: a b",
    "tool: result of a",
    "tool: result of b",
    "user: Go on.",
  ]);
});

test("adds a result to a call without one, also at the end", () => {
  expect(short(pairedCalls([calling("a", "b"), result("b"), user, calling("c")]))).toEqual([
    "assistant: a b",
    "tool: [no result was given]",
    "tool: result of b",
    "user: Go on.",
    "assistant: c",
    "tool: [no result was given]",
  ]);
});

test("converts results without a call, and second results, to user text", () => {
  expect(short(pairedCalls([result("x"), calling("a"), result("a"), result("a", "again")]))).toEqual([
    'user: [The result of a call "x" that is not part of this conversation:] result of x',
    "assistant: a",
    "tool: result of a",
    'user: [The result of a call "a" that is not part of this conversation:] again',
  ]);
});

test("assigns a repeated id to the last call before the result", () => {
  const turns = [
    calling("0"),
    result("0", "one"),
    calling("0"),
    result("0", "two"),
    calling("0", "0"),
    result("0", "three"),
    result("0", "four"),
  ];
  expect(short(pairedCalls(turns)).filter((turn) => turn.startsWith("tool"))).toEqual([
    "tool: one",
    "tool: two",
    "tool: three",
    "tool: four",
  ]);
});

test("puts results of consecutive assistant turns behind the last turn", () => {
  expect(short(pairedCalls([calling("a"), calling("b"), result("a"), result("b")]))).toEqual([
    "assistant: a",
    "assistant: b",
    "tool: result of a",
    "tool: result of b",
  ]);
});

test("follows each run of calls with only its results, and loses no text", () => {
  const id = fc.constantFrom("a", "b", "c");
  const turn = fc.oneof(
    fc.constant(user),
    fc.array(id, { maxLength: 3 }).map((ids) => calling(...ids)),
    fc.tuple(id, fc.uuid()).map(([callId, text]) => result(callId, text)),
  );
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 20 }), (turns) => {
      const paired = pairedCalls(turns);
      const due: string[] = [];
      for (const one of paired) {
        if (one.role === "tool") expect(due.shift()).toBe(one.callId);
        else if (one.role !== "assistant") expect(due).toEqual([]);
        if (one.role === "assistant")
          due.push(...one.parts.flatMap((part) => (part.type === "call" ? [part.callId] : [])));
      }
      expect(due).toEqual([]);
      const all = JSON.stringify(paired);
      for (const one of turns) if (one.role === "tool") expect(all).toContain(JSON.stringify(one.parts[0]));
      expect(pairedCalls(paired)).toEqual(paired);
    }),
  );
});
