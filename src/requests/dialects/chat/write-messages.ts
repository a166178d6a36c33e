// Writes the turns of a conversation as messages that the chat templates of local models accept too.
import { fieldError } from "../../../base/errors.ts";
import type { EngineTools } from "../conversation/call-names.ts";
import type {
  AssistantTurn,
  CallPart,
  ConversationMessage,
  FilePart,
  ImagePart,
  InstructionTurn,
  Part,
  ReasoningPart,
  ResultTurn,
  UserTurn,
} from "../conversation/conversation.ts";
import { fileName } from "../conversation/file-names.ts";
import { pairedCalls } from "../conversation/paired-calls.ts";
import { isObject, type Json } from "./json-value.ts";
import { reasoningMembers } from "./reasoning.ts";
import type { ServerRules } from "./server-rules.ts";

/** The rules of the server, and the id of the model there. */
export interface ChatServer {
  readonly rules: ServerRules;
  readonly model: string;
  readonly keepsCustom?: boolean;
}

/**
 * Writes turns as messages. Leading system messages are joined into one, and later ones become part of the next user
 * message, because templates refuse a second or late system message. Consecutive user messages are joined too, because
 * many templates require alternating roles. Calls of custom tools become calls of functions, unless `keepsCustom` is
 * set. Throws `invalid_request` that names the place if a file cannot be sent.
 */
export function writeMessages(turns: readonly ConversationMessage[], tools: EngineTools, server: ChatServer): Json[] {
  const leading = turns.findIndex(({ role }) => role !== "system" && role !== "developer");
  const count = leading < 0 ? turns.length : leading;
  const messages = new MessageWriter(tools, server);
  messages.system(turns.slice(0, count) as InstructionTurn[]);
  for (const turn of pairedCalls(turns.slice(count))) messages.add(turn);
  return messages.finished();
}

class MessageWriter {
  readonly #tools: EngineTools;
  readonly #server: ChatServer;
  readonly #messages: Json[] = [];
  /** Consecutive assistant turns that will become one message. `#user` is the beginning of the next user message. */
  #assistant: AssistantTurn[] = [];
  #user: { parts: Part[]; name: string | undefined } | undefined;

  constructor(tools: EngineTools, server: ChatServer) {
    this.#tools = tools;
    this.#server = server;
  }

  system(turns: readonly InstructionTurn[]): void {
    const text = turns
      .map(instructionText)
      .filter((one) => one !== "")
      .join("\n\n");
    if (text !== "") this.#messages.push({ role: "system", content: text });
  }

  add(turn: ConversationMessage): void {
    if (turn.role === "assistant") {
      this.#endUser();
      this.#assistant.push(turn);
      return;
    }
    this.#endAssistant();
    if (turn.role === "tool") this.#result(turn);
    else if (turn.role === "user") this.#addUser(turn);
    else this.#userParts([{ type: "text", text: `<system>\n${instructionText(turn)}\n</system>` }], undefined);
  }

  finished(): Json[] {
    this.#endAssistant();
    this.#endUser();
    return this.#messages;
  }

  #addUser({ parts, name }: UserTurn): void {
    if (this.#user && this.#user.name !== undefined && name !== this.#user.name) this.#endUser();
    this.#userParts(parts, name);
  }

  #userParts(parts: readonly Part[], name: string | undefined): void {
    this.#user ??= { parts: [], name };
    this.#user.name ??= name;
    const { parts: all } = this.#user;
    const isBesideText = all.at(-1)?.type === "text";
    for (const [index, part] of parts.entries()) {
      // The texts of joined messages become paragraphs, because templates concatenate parts without a separator.
      const begins = index === 0 && isBesideText && part.type === "text";
      all.push(begins ? { ...part, text: `\n\n${part.text}` } : part);
    }
  }

  /**
   * Writes a tool result. Results follow each other directly, so their media are put into a user message after them.
   */
  #result({ callId, parts, failed }: ResultTurn): void {
    const texts: string[] = [];
    const media: Part[] = [];
    for (const part of parts) {
      if (part.type === "text") texts.push(part.text);
      else media.push(part);
    }
    if (media.length > 0) {
      texts.push("[What else this result holds is in the next message of the user.]");
      this.#userParts([{ type: "text", text: `[Part of the result of call "${callId}":]` }, ...media], undefined);
    }
    const text = texts.join("\n");
    this.#messages.push({ role: "tool", tool_call_id: callId, content: failed ? `The tool failed: ${text}` : text });
  }

  #endAssistant(): void {
    const turns = this.#assistant;
    const { rules } = this.#server;
    if (turns.length === 0) return;
    this.#assistant = [];
    const thoughts: ReasoningPart[] = [];
    const calls: CallPart[] = [];
    for (const turn of turns) {
      for (const part of turn.parts) {
        if (part.type === "reasoning") thoughts.push(part);
        else if (part.type === "call") calls.push(part);
      }
    }
    const text = turns
      .map(answerText)
      .filter((one) => one !== "")
      .join("\n\n");
    const reasoning = reasoningMembers(thoughts, rules.reasoning, rules.takesMore);
    if (text === "" && calls.length === 0 && Object.keys(reasoning).length === 0) return;
    const name = turns.find((turn) => turn.name !== undefined)?.name;
    this.#messages.push({
      role: "assistant",
      content: text === "" && calls.length > 0 ? null : text,
      ...(name === undefined ? {} : { name }),
      ...reasoning,
      ...(calls.length > 0 ? { tool_calls: calls.map((call, index) => this.#call(call, index)) } : {}),
    });
  }

  #call(call: CallPart, index: number): Json {
    const { rules, model, keepsCustom = false } = this.#server;
    if (keepsCustom && call.kind === "custom") {
      return { id: call.callId, type: "custom", custom: { name: call.name, input: call.input } };
    }
    const called = { name: this.#tools.nameOf(call), arguments: objectText(this.#tools.argumentsOf(call)) };
    return { id: call.callId, type: "function", function: called, ...(index === 0 ? rules.call?.(model) : {}) };
  }

  #endUser(): void {
    const user = this.#user;
    if (!user) return;
    this.#user = undefined;
    const parts = user.parts.map(partOf);
    const [only] = parts;
    const content = parts.length === 0 ? "" : parts.length === 1 && only?.["type"] === "text" ? only["text"] : parts;
    this.#messages.push({ role: "user", content, ...(user.name === undefined ? {} : { name: user.name }) });
  }
}

function instructionText({ parts, place }: InstructionTurn): string {
  return parts
    .map((part) => {
      if (part.type === "text") return part.text;
      throw fieldError(place, `instructions to this model are text; send the ${part.type} in a message of the user.`);
    })
    .join("\n\n");
}

/**
 * Joins adjacent texts directly, because they are pieces of one text. Texts with other parts between them become
 * paragraphs.
 */
function answerText({ parts }: AssistantTurn): string {
  const paragraphs: string[] = [];
  let goesOn = false;
  for (const part of parts) {
    const isText = part.type === "text" || part.type === "refusal";
    if (isText && goesOn) paragraphs.push((paragraphs.pop() ?? "") + part.text);
    else if (isText) paragraphs.push(part.text);
    goesOn = isText;
  }
  return paragraphs.filter((paragraph) => paragraph !== "").join("\n\n");
}

/**
 * Wraps arguments that are not a JSON object. Models sometimes write such arguments, and templates and servers fail on
 * them.
 */
function objectText(text: string): string {
  if (text.trim() === "") return "{}";
  try {
    if (isObject(JSON.parse(text))) return text;
  } catch {
    // Text that is not valid JSON is handled below, in the same way as a value that is no object.
  }
  return JSON.stringify({ invalid_arguments: text });
}

function partOf(part: Part): Json {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return imageOf(part);
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      return fileOf(part);
  }
}

function imageOf({ source, detail, place }: ImagePart): Json {
  if (source.kind === "id") throw fileIdError(place);
  if (source.kind === "text") return { type: "text", text: source.text };
  const url = source.kind === "url" ? source.url : dataUrlOf(source);
  return { type: "image_url", image_url: { url, ...(detail === undefined ? {} : { detail }) } };
}

/** Writes a file. A text file is sent as text, because few servers read files. */
function fileOf({ source, name, place }: FilePart): Json {
  if (source.kind === "id") throw fileIdError(place);
  if (source.kind === "url") {
    throw fieldError(place, "this model's server fetches no files from addresses; send the file's data, or its text.");
  }
  if (source.kind === "text") return documentOf(name, source.text);
  if (source.mediaType.startsWith("text/"))
    return documentOf(name, Buffer.from(source.data, "base64").toString("utf8"));
  if (source.mediaType.startsWith("image/")) return { type: "image_url", image_url: { url: dataUrlOf(source) } };
  return { type: "file", file: { filename: fileName(name, source.mediaType), file_data: dataUrlOf(source) } };
}

function documentOf(name: string | undefined, text: string): Json {
  return { type: "text", text: name === undefined ? text : `[File "${name}":]\n${text}` };
}

function dataUrlOf({ mediaType, data }: { readonly mediaType: string; readonly data: string }): string {
  return `data:${mediaType};base64,${data}`;
}

function fileIdError(place: string): Error {
  return fieldError(
    place,
    "a file id is known to the server that gave it, and this model's is another one; send the file's data.",
  );
}
