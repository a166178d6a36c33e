// Converts the messages of a chat request to the turns of a conversation.
import { fieldError } from "../../../base/errors.ts";
import { cacheOf } from "../conversation/cache-marks.ts";
import { CollectedReply } from "../conversation/collected-reply.ts";
import type {
  AnswerPart,
  Cache,
  CallKind,
  CallPart,
  ConversationMessage,
  FilePart,
  MediaSource,
  Part,
  RequestPath,
  ResultTurn,
} from "../conversation/conversation.ts";
import { isObject, type Json, listOf, objectOf, textOf } from "./json-value.ts";
import { sendReasoning, thinkingText, wholeReasoning } from "./reasoning.ts";

const dataUrl = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i;
/** Types of parts with reasoning in an assistant's message, as in the APIs of Mistral and LiteLLM. */
const thoughtTypes = new Set(["thinking", "redacted_thinking"]);

/** Converts messages to turns. Throws `invalid_request` that names an unknown role or part. */
export function readMessages(messages: readonly unknown[]): ConversationMessage[] {
  const reader = new MessageReader();
  return messages.map((message, index) => reader.read(objectOf(message), `messages[${index}]`));
}

class MessageReader {
  readonly #kinds = new Map<string, CallKind>();
  /** For each function, the id that was generated for its last legacy `function_call`. Such calls have no ids. */
  readonly #olderCalls = new Map<string, string>();

  read(message: Json, place: RequestPath): ConversationMessage {
    const { role } = message;
    switch (role) {
      case "system":
      case "developer":
        return { role, parts: readContent(message, place), place };
      case "user": {
        const name = textOf(message["name"]);
        return { role, parts: readContent(message, place), ...(name === undefined ? {} : { name }), place };
      }
      case "assistant":
        return this.#assistant(message, place);
      case "tool":
        return this.#result(textOf(message["tool_call_id"]) ?? "", message, place);
      case "function": {
        const name = textOf(message["name"]) ?? "";
        return this.#result(this.#olderCalls.get(name) ?? `call_of_${name}`, message, place);
      }
      default:
        throw fieldError(
          `${place}.role`,
          `"${String(role)}" is a role that only some model servers know, and this model is asked in another format; use system, developer, user, assistant or tool.`,
        );
    }
  }

  #assistant(message: Json, place: RequestPath): ConversationMessage {
    if (isObject(message["audio"])) {
      throw fieldError(
        `${place}.audio`,
        "an earlier answer in sound cannot be told to this model; send its transcript.",
      );
    }
    const parts: AnswerPart[] = [];
    const thoughts = new CollectedReply();
    for (const piece of wholeReasoning({ ...message, ...thoughtsOf(message) })) sendReasoning(piece, thoughts);
    parts.push(...thoughts.parts);
    parts.push(...answerTexts(message, place));
    const refusal = textOf(message["refusal"]);
    if (refusal !== undefined) parts.push({ type: "refusal", text: refusal });
    for (const [index, call] of listOf(message["tool_calls"]).entries()) {
      parts.push(this.#call(objectOf(call), `${place}.tool_calls[${index}]`));
    }
    const older = message["function_call"];
    if (isObject(older)) parts.push(this.#olderCall(older, place));
    const name = textOf(message["name"]);
    return { role: "assistant", parts, ...(name === undefined ? {} : { name }), place };
  }

  #call(call: Json, place: RequestPath): CallPart {
    const callId = textOf(call["id"]) ?? "";
    const kind = isObject(call["custom"]) ? "custom" : "function";
    const called = objectOf(call[kind]);
    const name = textOf(called["name"]);
    if (name === undefined) throw fieldError(place, 'must have a "function" or a "custom" with the name of the tool.');
    this.#kinds.set(callId, kind);
    const input = textOf(called[kind === "custom" ? "input" : "arguments"]) ?? "";
    const cache = cacheOf(call);
    return { type: "call", callId, kind, name, input, ...(cache ? { cache } : {}) };
  }

  #olderCall(call: Json, place: RequestPath): CallPart {
    const name = textOf(call["name"]);
    if (name === undefined) throw fieldError(`${place}.function_call.name`, "is missing.");
    const callId = `call_of_${name}_in_${place.replace(/\D+/g, "")}`;
    this.#olderCalls.set(name, callId);
    return { type: "call", callId, kind: "function", name, input: textOf(call["arguments"]) ?? "" };
  }

  #result(callId: string, message: Json, place: RequestPath): ResultTurn {
    const parts = readContent({ ...message, cache_control: undefined }, place);
    const cache = cacheOf(message);
    return {
      role: "tool",
      callId,
      parts,
      kind: this.#kinds.get(callId) ?? "function",
      ...(cache ? { cache } : {}),
      place,
    };
  }
}

/** Returns the reasoning parts of the content under `thinking_blocks`, from which `wholeReasoning` reads them. */
function thoughtsOf({ content, thinking_blocks }: Json): Json {
  const blocks = listOf(content).filter((part) => isObject(part) && thoughtTypes.has(String(part["type"])));
  if (blocks.length === 0 || listOf(thinking_blocks).length > 0) return {};
  return {
    thinking_blocks: blocks.map((block) => ({
      ...objectOf(block),
      thinking: thinkingText(objectOf(block)["thinking"]),
    })),
  };
}

function answerTexts(message: Json, place: RequestPath): AnswerPart[] {
  const { content } = message;
  if (!Array.isArray(content)) return readContent(message, place).filter((part) => part.type === "text");
  return withCache(
    content.flatMap((part: unknown, index): AnswerPart[] => {
      const { type, text, refusal } = objectOf(part);
      if (type === "refusal") return [{ type, text: textOf(refusal) ?? "" }];
      if (typeof type === "string" && thoughtTypes.has(type)) return [];
      if (type === "text") return [cached({ type, text: textOf(text) ?? "" }, part)];
      throw fieldError(
        `${place}.content[${index}]`,
        `must be text or a refusal, not ${kindOf(type)}: an assistant's message holds nothing else.`,
      );
    }),
    cacheOf(message),
  );
}

/** Reads the content of a message. A cache mark of the message applies to all of its content. */
function readContent(message: Json, place: RequestPath): Part[] {
  const { content } = message;
  const parts: Part[] =
    typeof content === "string"
      ? content === ""
        ? []
        : [{ type: "text", text: content }]
      : listOf(content).map((part, index) => readPart(objectOf(part), `${place}.content[${index}]`));
  return withCache(parts, cacheOf(message));
}

function withCache<P extends AnswerPart | Part>(parts: P[], cache: Cache | undefined): P[] {
  const last = parts.at(-1);
  if (!cache || !last || "cache" in last) return parts;
  return [...parts.slice(0, -1), { ...last, cache }];
}

function readPart(part: Json, place: RequestPath): Part {
  const { type } = part;
  if (type === "text") return cached({ type, text: textOf(part["text"]) ?? "" }, part);
  if (type === "refusal") return { type: "text", text: textOf(part["refusal"]) ?? "" };
  if (type === "image_url") {
    const { url, detail } = objectOf(part["image_url"]);
    const shown = textOf(detail);
    const source = urlSource(textOf(url) ?? "");
    return cached({ type: "image", source, ...(shown === undefined ? {} : { detail: shown }), place }, part);
  }
  if (type === "input_audio") {
    const { data, format } = objectOf(part["input_audio"]);
    return { type: "audio", data: textOf(data) ?? "", format: textOf(format) ?? "", place };
  }
  if (type === "file") return cached(readFile(objectOf(part["file"]), place), part);
  throw fieldError(
    place,
    `${kindOf(type)} is a part that only some model servers know, and this model is asked in another format; send text, image_url, input_audio or file.`,
  );
}

function readFile({ file_data, file_id, filename }: Json, place: RequestPath): FilePart {
  const data = textOf(file_data);
  const id = textOf(file_id);
  const name = textOf(filename);
  if (data === undefined && id === undefined)
    throw fieldError(`${place}.file`, "must have `file_data`, or a `file_id`.");
  const source: MediaSource = data === undefined ? { kind: "id", id: id ?? "" } : urlSource(data);
  return { type: "file", source, ...(name === undefined ? {} : { name }), place };
}

/** Returns the data of a data URL. Some clients send bare base64 for a file. The media type is then unknown. */
function urlSource(url: string): MediaSource {
  const found = dataUrl.exec(url.slice(0, 1_000));
  if (found) return { kind: "data", mediaType: found[1] || "text/plain", data: url.slice(found[0].length) };
  if (/^[a-z][a-z0-9+.-]*:/i.test(url)) return { kind: "url", url };
  return { kind: "data", mediaType: "application/octet-stream", data: url };
}

function cached<P extends Part>(part: P, from: unknown): P {
  const cache = cacheOf(objectOf(from));
  return cache ? { ...part, cache } : part;
}

function kindOf(type: unknown): string {
  return typeof type === "string" ? `\`${type}\`` : "something without a type";
}
