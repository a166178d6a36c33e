// Writes the parts of a conversation as content blocks of a Messages request.
import { fieldError } from "../../../base/errors.ts";
import type { EngineTools } from "../conversation/call-names.ts";
import type {
  AnswerPart,
  Cache,
  CallPart,
  FilePart,
  ImagePart,
  Part,
  ReasoningPart,
} from "../conversation/conversation.ts";
import { inputObject, type Json } from "./json.ts";

/** Matches the call ids that Anthropic accepts. */
const fitting = /^[a-zA-Z0-9_-]+$/;

/**
 * Gives each call of a conversation a unique id, and gives its result the same id. If the call's own id is valid and
 * unused, the call keeps it. Some models repeat ids, and Anthropic refuses a conversation with a duplicate id.
 */
export class CallIds {
  /** Ids of the calls that still wait for their results, in the order of the calls. */
  readonly #waiting: string[] = [];
  readonly #given = new Set<string>();
  readonly #taken: ReadonlySet<string>;
  #changed = 0;

  /** `ids` lists all call ids of the conversation. A generated id must not equal any of them. */
  constructor(ids: readonly string[]) {
    this.#taken = new Set(ids);
  }

  ofCall(id: string): string {
    const given = fitting.test(id) && !this.#given.has(id) ? id : this.#free(id);
    this.#given.add(given);
    this.#waiting.push(given);
    return given;
  }

  /** Returns the id of the first call that has no result yet. */
  ofResult(): string {
    return this.#waiting.shift() ?? "";
  }

  #free(id: string): string {
    const plain = id.replace(/[^a-zA-Z0-9_-]/g, "_");
    let free: string;
    do free = `${plain}_${++this.#changed}`;
    while (this.#taken.has(free));
    return free;
  }
}

/** Removes blank texts if there is no other text. Anthropic refuses content whose only texts are blank. */
export function withoutBlanks(blocks: readonly Json[]): readonly Json[] {
  const isBlank = ({ type, text }: Json) => type === "text" && String(text).trim() === "";
  const hasText = blocks.some((block) => block["type"] === "text" && !isBlank(block));
  return hasText ? blocks : blocks.filter((block) => !isBlank(block));
}

/**
 * Writes the parts of a user, an instruction or a tool result. Empty texts are left out, because Anthropic refuses
 * them.
 */
export function promptBlocks(parts: readonly Part[]): Json[] {
  return parts.flatMap((part) => {
    if (part.type === "text") return part.text === "" ? [] : [textBlock(part.text, part.cache)];
    if (part.type === "image") return [imageBlock(part)];
    if (part.type === "file") return [documentBlock(part)];
    throw fieldError(
      part.place,
      "models whose server speaks Messages hear no audio; leave it out, or ask a model that takes audio.",
    );
  });
}

export function textBlock(text: string, cache?: Cache): Json {
  return { type: "text", text, ...marked(cache) };
}

/** Anthropic gets reasoning back only with its own signature, because it refuses reasoning without one. */
export function answerBlocks(parts: readonly AnswerPart[], ids: CallIds, tools: EngineTools): Json[] {
  return parts.flatMap((part) => {
    if (part.type === "call") return [callBlock(part, ids, tools)];
    if (part.type === "reasoning") return reasoningBlocks(part);
    const cache = part.type === "text" ? part.cache : undefined;
    return part.text === "" ? [] : [textBlock(part.text, cache)];
  });
}

export function marked(cache: Cache | undefined): Json {
  return cache ? { cache_control: cache } : {};
}

function reasoningBlocks({ text, proof }: ReasoningPart): Json[] {
  if (proof?.kind === "signature") return [{ type: "thinking", thinking: text, signature: proof.data }];
  if (proof?.kind === "redacted") return [{ type: "redacted_thinking", data: proof.data }];
  return [];
}

function callBlock(call: CallPart, ids: CallIds, tools: EngineTools): Json {
  return {
    type: "tool_use",
    id: ids.ofCall(call.callId),
    name: tools.nameOf(call),
    input: inputObject(tools.argumentsOf(call)),
    ...marked(call.cache),
  };
}

function imageBlock({ source, cache, place }: ImagePart): Json {
  switch (source.kind) {
    case "url":
      return { type: "image", source: { type: "url", url: source.url }, ...marked(cache) };
    case "data":
      return { type: "image", source: base64(source.mediaType, source.data), ...marked(cache) };
    case "text":
      throw fieldError(place, "an image is sent as its bytes or its address, not as a text.");
    case "id":
      throw fileOfAnother(place);
  }
}

/** Anthropic accepts only PDFs and plain text. */
function documentBlock({ source, name, cache, place }: FilePart): Json {
  const block = (from: Json) => ({
    type: "document",
    source: from,
    ...(name ? { title: name } : {}),
    ...marked(cache),
  });
  switch (source.kind) {
    case "url":
      return block({ type: "url", url: source.url });
    case "text":
      return block(plainText(source.text));
    case "data":
      if (source.mediaType === "application/pdf") return block(base64(source.mediaType, source.data));
      if (source.mediaType.startsWith("text/")) return block(plainText(Buffer.from(source.data, "base64").toString()));
      throw fieldError(
        place,
        `a file of the type \`${source.mediaType}\` cannot be shown to a model whose server speaks Messages; send a PDF or plain text.`,
      );
    case "id":
      throw fileOfAnother(place);
  }
}

function base64(mediaType: string, data: string): Json {
  return { type: "base64", media_type: mediaType, data };
}

function plainText(data: string): Json {
  return { type: "text", media_type: "text/plain", data };
}

/**
 * Returns the error for a file id of another vendor. A file store belongs to one account at one vendor. Elsewhere, the
 * id is unknown or refers to another file.
 */
function fileOfAnother(place: string) {
  return fieldError(place, "it names a file that the server of this model does not have; send the file itself.");
}
