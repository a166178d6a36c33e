// Converts the messages of a chat request into node-llama-cpp's chat history.
import type { ChatHistoryItem, ChatModelFunctionCall, ChatModelResponse } from "node-llama-cpp";
import { Fields, isObject } from "./fields.ts";
import { invalid } from "./request-error.ts";

const roles = ["system", "developer", "user", "assistant", "tool", "function"] as const;

interface PendingCall {
  /** The id of the call. Undefined for the older `function_call`, which has no id. */
  id: string | undefined;
  call: ChatModelFunctionCall;
  /** The path of the call, for error messages. */
  path: string;
}

/**
 * Converts the messages. Consecutive assistant and tool messages become one model turn, as chat templates
 * expect. A last assistant message without calls is continued. Throws a RequestError that names the invalid
 * message.
 */
export function readHistory(messages: readonly unknown[]): ChatHistoryItem[] {
  if (messages.length === 0) throw invalid("messages must hold at least one message.", "messages");
  const history: ChatHistoryItem[] = [];
  let pending: PendingCall[] = [];
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`;
    if (!isObject(message)) throw invalid(`${path} must be an object with "role" and "content".`, path);
    const fields = new Fields(message, `${path}.`);
    const role = fields.oneOf("role", roles);
    if (role === undefined) throw invalid(`${path}.role is required: one of ${roles.join(", ")}.`, `${path}.role`);
    if (role === "tool" || role === "function") {
      answerCall(pending, fields, role);
      pending = pending.filter(({ call }) => call.result === undefined);
      continue;
    }
    refuseUnanswered(pending);
    if (role === "assistant") pending = readAssistant(modelTurn(history), fields);
    else if (role === "user") history.push({ type: "user", text: readContent(fields) });
    else history.push({ type: "system", text: readContent(fields) });
  }
  refuseUnanswered(pending);
  return history;
}

/** Returns the text of a message's content. Throws a RequestError with the path of a part that is not text. */
function readContent(fields: Fields, kinds: readonly string[] = ["text"]): string {
  const content = fields.value("content");
  if (typeof content === "string") return content;
  const name = fields.name("content");
  if (!Array.isArray(content)) throw invalid(`${name} must be a string or an array of text parts.`, name);
  return content
    .map((part, index) => {
      const kind = isObject(part) ? part["type"] : undefined;
      const text = isObject(part) && typeof kind === "string" ? part[kind] : undefined;
      if (typeof kind === "string" && kinds.includes(kind) && typeof text === "string") return text;
      const found = typeof kind === "string" ? `"${kind}"` : "this";
      throw invalid(
        `${name}[${index}]: this model takes only text parts, {"type": "text", "text": "…"}, not ${found}.`,
        `${name}[${index}]`,
      );
    })
    .join("");
}

function modelTurn(history: ChatHistoryItem[]): ChatModelResponse {
  const last = history.at(-1);
  if (last?.type === "model") return last;
  const turn: ChatModelResponse = { type: "model", response: [] };
  history.push(turn);
  return turn;
}

function readAssistant(turn: ChatModelResponse, fields: Fields): PendingCall[] {
  const calls = readCalls(fields);
  const thinking = fields.string("reasoning_content");
  if (thinking !== undefined && thinking !== "") {
    turn.response.push({ type: "segment", segmentType: "thought", text: thinking, ended: true });
  }
  const refusal = fields.string("refusal");
  if (fields.value("content") !== undefined) turn.response.push(readContent(fields, ["text", "refusal"]));
  else if (refusal !== undefined) turn.response.push(refusal);
  else if (calls.length === 0) throw invalid(`${fields.name("content")} is required where there are no tool_calls.`);
  for (const [index, { call }] of calls.entries()) {
    if (index === 0) call.startsNewChunk = true;
    turn.response.push(call);
  }
  return calls;
}

function readCalls(fields: Fields): PendingCall[] {
  const calls: PendingCall[] = [];
  for (const [index, entry] of (fields.array("tool_calls") ?? []).entries()) {
    const path = `${fields.name("tool_calls")}[${index}]`;
    const call = isObject(entry) ? new Fields(entry, `${path}.`) : undefined;
    const id = call?.string("id");
    const target = call?.object("function");
    if (id === undefined || target === undefined) throw invalid(`${path} must have "id" and "function".`, path);
    calls.push({ id, path, call: readCall(target) });
  }
  const older = fields.object("function_call");
  if (older !== undefined) calls.push({ id: undefined, path: fields.name("function_call"), call: readCall(older) });
  return calls;
}

function readCall(fields: Fields): ChatModelFunctionCall {
  const name = fields.string("name");
  if (name === undefined) throw invalid(`${fields.name("name")} is required.`);
  const text = fields.string("arguments") ?? "";
  return { type: "functionCall", name, params: text === "" ? undefined : parsed(text), result: undefined };
}

function answerCall(pending: readonly PendingCall[], fields: Fields, role: "tool" | "function"): void {
  const key = role === "tool" ? "tool_call_id" : "name";
  const wanted = fields.string(key);
  if (wanted === undefined) throw invalid(`${fields.name(key)} is required for a message of role "${role}".`);
  const answered = pending.find(({ id, call }) =>
    role === "tool" ? id === wanted : id === undefined && call.name === wanted,
  );
  if (answered === undefined) {
    throw invalid(`${fields.name(key)} "${wanted}" answers no call of the assistant message before it.`);
  }
  answered.call.result = readContent(fields);
}

function refuseUnanswered(pending: readonly PendingCall[]): void {
  const [first] = pending;
  if (first === undefined) return;
  throw invalid(`${first.path} has no answer. After a call there must be a message with its result.`);
}

/** Parses the text as JSON, because templates write such values as JSON. Any other text is returned as it is. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
