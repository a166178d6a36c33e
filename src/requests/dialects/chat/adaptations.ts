// Lists the parts of a translated request that servers of chat completions may refuse, and how the request is changed
// then.
import { type Adaptation, looseSchemas, type OptionalMember, textValue } from "../conversation/adaptations.ts";
import { isObject, listOf } from "./json-value.ts";

type Body = Record<string, unknown>;
type Message = Record<string, unknown>;

/** Text of an assistant message that is inserted between tool results and the next user message. */
const afterResults = "Done.";
/** Matches the ids of tool calls that Mistral's tokenizer accepts. */
const shortId = /^[a-zA-Z0-9]{9}$/;
const shortIdLength = 9;

/**
 * The request for usage. Without it, usage is only estimated, so other requests keep it until a server has answered
 * without it.
 */
export const usageAdaptation: OptionalMember = { path: "stream_options", isKeptInTrial: true };

export const chatAdaptations: readonly Adaptation[] = [
  usageAdaptation,
  {
    path: "reasoning_effort",
    ignored: "reasoning",
    refusedValue: textValue,
    words:
      /\b(?:does not|doesn't) support (?:thinking|reasoning)\b|\b(?:thinking|reasoning) (?:is mandatory|cannot be disabled|can't be disabled)|\bonly works in thinking mode\b|\binvalid reasoning value\b|\bthinking (?:level )?(?:\w+ )?is not (?:supported|enabled)\b/i,
  },
  { path: "chat_template_kwargs", ignored: "reasoning" },
  { path: "messages.*.reasoning_content", ignored: "reasoning", tidy: removeEmptyMessages },
  { path: "messages.*.reasoning", ignored: "reasoning", tidy: removeEmptyMessages },
  { path: "messages.*.reasoning_details", ignored: "reasoning", tidy: removeEmptyMessages },
  { path: "messages.*.tool_calls.*.extra_content" },
  { path: "tools.*.function.strict", ignored: "strict" },
  { path: "verbosity", ignored: "verbosity", refusedValue: textValue },
  // Members whose default value has the same effect as leaving them out.
  { path: "parallel_tool_calls", only: true },
  { path: "temperature", only: 1 },
  { path: "top_p", only: 1 },
  {
    name: "max_completion_tokens",
    words: /\bmax_tokens\b.{0,80}\bnot supported\b.{0,160}\bmax_completion_tokens\b/s,
    rewrite: (body) => rename(body, "max_tokens", "max_completion_tokens"),
  },
  {
    name: "assistant after results",
    words: /\bunexpected role ['"`]?user['"`]? after role ['"`]?tool\b/i,
    rewrite: addAfterResults,
  },
  looseSchemas(/^invalid schema for function\b/i),
  { name: "short call ids", words: /\btool call id\b.{0,400}\blength of 9\b/is, rewrite: shortenIds },
];

function rename(body: Body, name: string, newName: string): boolean {
  if (body[name] === undefined || body[newName] !== undefined) return false;
  body[newName] = body[name];
  delete body[name];
  return true;
}

function messagesOf({ messages }: Body): readonly Message[] {
  return listOf(messages).filter(isObject);
}

/** Removes messages that contained only reasoning and are now empty. */
function removeEmptyMessages(body: Body): void {
  const members = ["reasoning_content", "reasoning", "reasoning_details", "tool_calls"];
  body["messages"] = messagesOf(body).filter(
    (message) =>
      message["role"] !== "assistant" ||
      message["content"] !== "" ||
      members.some((member) => message[member] !== undefined),
  );
}

function addAfterResults(body: Body): boolean {
  const messages = messagesOf(body);
  const written = messages.flatMap((message, index) =>
    message["role"] === "user" && messages[index - 1]?.["role"] === "tool"
      ? [{ role: "assistant", content: afterResults }, message]
      : [message],
  );
  body["messages"] = written;
  return written.length > messages.length;
}

/** Replaces the ids of calls and of their results. Each request of a conversation gets the same new ids. */
function shortenIds(body: Body): boolean {
  const messages = messagesOf(body);
  const shortened = new Map<unknown, string>();
  const given = new Set<string>();
  const shorten = (id: unknown): string => {
    const known = shortened.get(id);
    if (known !== undefined) return known;
    let short = String(id);
    for (let seed = 0; !shortId.test(short) || given.has(short); seed++) {
      const hash = Bun.hash.wyhash(String(id), BigInt(seed)).toString(36);
      short = hash.padStart(shortIdLength, "0").slice(-shortIdLength);
    }
    shortened.set(id, short);
    given.add(short);
    return short;
  };
  let isChanged = false;
  const edit = (holder: Message, name: string) => {
    const id = holder[name];
    if (id === undefined) return;
    holder[name] = shorten(id);
    isChanged ||= holder[name] !== id;
  };
  for (const message of messages) {
    for (const call of listOf(message["tool_calls"])) if (isObject(call)) edit(call as Message, "id");
    edit(message, "tool_call_id");
  }
  return isChanged;
}
