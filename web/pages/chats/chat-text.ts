// Extracts text from a stored chat: its first words for a list, and the parts of a message.
import type { StoredChatCompletion, StoredChatMessage } from "../../api/types.ts";

const maxWords = 240;

/** Returns the beginning of the answer: the API's list of chats does not contain the questions. */
export function firstWords({ choices }: StoredChatCompletion): string {
  const message = choices[0]?.message;
  if (!message) return "Empty";
  const text = textOf(message.content).trim() || textOf(message["refusal"]).trim();
  if (text !== "") return text.slice(0, maxWords).replace(/\s+/g, " ");
  const names = callsOf(message).map(({ name }) => name);
  return names.length > 0 ? `Calls ${names.join(", ")}` : "An empty answer";
}

/** Returns the text of a message of a model or tool; a value that is not text yields an empty string. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

/** Returns the calls of functions and custom tools, and the deprecated `function_call`. */
export function callsOf(message: Readonly<Record<string, unknown>>): ToolCall[] {
  const calls: unknown[] = Array.isArray(message["tool_calls"]) ? message["tool_calls"] : [];
  const old = recordOf(message["function_call"]);
  return [...calls.map(recordOf), ...(old ? [{ function: old }] : [])].flatMap((call) => {
    const called = recordOf(call?.["function"]) ?? recordOf(call?.["custom"]);
    if (!called) return [];
    const given = called["arguments"] ?? called["input"];
    return [{ id: textOf(call?.["id"]), name: textOf(called["name"]), arguments: readable(textOf(given)) }];
  });
}

/** Indents a text if it is JSON. */
function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export type MessagePart = { kind: "text"; text: string } | { kind: "other"; title: string; about: string };

export function partsOf({ content, content_parts }: StoredChatMessage): MessagePart[] {
  if (content !== null) return content === "" ? [] : [{ kind: "text", text: content }];
  return (content_parts ?? []).map(partOf);
}

function partOf(part: Readonly<Record<string, unknown>>): MessagePart {
  const type = textOf(part["type"]);
  if (type === "text") return { kind: "text", text: textOf(part["text"]) };
  if (type === "refusal") return { kind: "text", text: textOf(part["refusal"]) };
  // Pictures of other hosts are not loaded: they would reveal who reads the chat, and when.
  const titles: Record<string, string> = { image_url: "Picture", input_audio: "Sound", file: "File" };
  const inner = recordOf(part[type]) ?? {};
  const where =
    textOf(inner["url"]) || textOf(inner["filename"]) || textOf(inner["file_id"]) || textOf(inner["format"]);
  const data = textOf(inner["data"]) || textOf(inner["file_data"]) || (where.startsWith("data:") ? where : "");
  return {
    kind: "other",
    title: titles[type] ?? `Part of type ${type}`,
    about:
      data === ""
        ? where
        : `${where.startsWith("data:") ? (/^data:([^;,]*)/.exec(where)?.[1] ?? "") : where}, ${sizeOf(data)}`,
  };
}

function sizeOf(text: string): string {
  return `${Math.max(1, Math.round((text.length * 3) / 4 / 1000))} KB in the message`;
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

/** The members of a stored chat that are not parameters of its request. */
const ownMembers = new Set([
  ...["id", "object", "created", "model", "choices", "usage", "request_id", "metadata", "system_fingerprint"],
  ...["service_tier"],
]);

/** Returns the parameters of the request, each as text. */
export function parametersOf(chat: StoredChatCompletion): { name: string; text: string; isLong: boolean }[] {
  return Object.entries(chat).flatMap(([name, value]) => {
    if (ownMembers.has(name) || value === null || value === undefined) return [];
    const isPlain = typeof value !== "object";
    const text = isPlain ? String(value) : JSON.stringify(value, null, 2);
    return [{ name: name === "input_user" ? "user" : name, text, isLong: !isPlain && text.length > 60 }];
  });
}
