// Prompts and answers for a trace, where the operator wants them: shortened, as text alone, without credentials.
import { dialects } from "../dialects/dialects.ts";
import type { TracedRequest } from "../domain/usage/trace.ts";
import { memberOf } from "./gen-ai.ts";

/** Characters of all prompts, and of all answers, of one request. */
export const mostContent = 8_192;
const mostParts = 256;
const longestWord = 64;
const longestSecret = 4_096;
/** The most that is kept of a stream, before secrets are taken out of it. */
const mostKept = mostContent + longestSecret;

/** Takes secrets out of a text. */
export type Redact = (text: string) => string;

interface Part {
  type: string;
  [member: string]: unknown;
}

interface Message {
  role: string;
  parts: Part[];
  finish_reason?: string;
}

/** The room for text, less what was used of it. */
class Room {
  readonly #redact: Redact;
  #left = mostContent;

  constructor(redact: Redact) {
    this.#redact = redact;
  }

  get full(): boolean {
    return this.#left <= 0;
  }

  /** A short word, which takes no room; empty where it is no text. */
  word(value: unknown): string {
    return typeof value === "string" ? this.#redact(value.slice(0, longestSecret)).slice(0, longestWord) : "";
  }

  clip(text: string): string {
    const left = Math.max(0, this.#left);
    this.#left -= text.length;
    // A secret that is cut in two would not be known any more.
    const safe = this.#redact(text.slice(0, left + longestSecret));
    return safe.length <= left && text.length <= left ? safe : `${safe.slice(0, left)}…`;
  }
}

/** JSON in the form of `gen_ai.input.messages`: the last messages, as far as there is room. */
export function inputMessages({ operation, body }: TracedRequest, redact: Redact): string {
  const room = new Room(redact);
  const { promptMember, isConversation } = dialects[operation];
  const given = body[promptMember];
  const texts = typeof given === "string" ? [given] : Array.isArray(given) ? given : [];
  const messages: Message[] = [];
  for (const one of texts.slice(-mostParts).toReversed()) {
    if (room.full) break;
    if (isConversation) messages.push(messageOf(one, room));
    else if (typeof one === "string") messages.push({ role: "user", parts: [textPart(one, room)] });
  }
  return JSON.stringify(messages.toReversed());
}

function messageOf(message: unknown, room: Room): Message {
  const role = room.word(memberOf(message, "role"));
  const callId = memberOf(message, "tool_call_id");
  const parts = partsOf(memberOf(message, "content"), room);
  if (role === "tool" && typeof callId === "string") {
    const response = parts.map(({ content }) => content).join("");
    return { role, parts: [{ type: "tool_call_response", id: room.word(callId), response }] };
  }
  return { role, parts: [...parts, ...callsOf(memberOf(message, "tool_calls"), room)] };
}

/** The parts of a message. Pictures, sounds and files are told by their kind alone. */
function partsOf(content: unknown, room: Room): Part[] {
  if (typeof content === "string") return [textPart(content, room)];
  if (!Array.isArray(content)) return [];
  return content.slice(0, mostParts).map((part): Part => {
    const text = memberOf(part, "text");
    if (typeof text === "string") return textPart(text, room);
    return { type: room.word(memberOf(part, "type")) };
  });
}

function callsOf(calls: unknown, room: Room): Part[] {
  if (!Array.isArray(calls)) return [];
  return calls.slice(0, mostParts).map((call): Part => {
    const called = memberOf(call, "function") ?? memberOf(call, "custom");
    const given = memberOf(called, "arguments") ?? memberOf(called, "input");
    const id = memberOf(call, "id");
    return {
      type: "tool_call",
      ...(typeof id === "string" ? { id: room.word(id) } : {}),
      name: room.word(memberOf(called, "name")),
      arguments: room.clip(typeof given === "string" ? given : ""),
    };
  });
}

function textPart(text: string, room: Room): Part {
  return { type: "text", content: room.clip(text) };
}

/** JSON in the form of `gen_ai.output.messages`, of a whole answer. */
export function outputMessages(answer: unknown, redact: Redact): string {
  const room = new Room(redact);
  const choices = memberOf(answer, "choices");
  const messages = (Array.isArray(choices) ? choices.slice(0, mostParts) : []).map((choice): Message => {
    const message = memberOf(choice, "message") ?? { content: memberOf(choice, "text") };
    const { parts } = messageOf(message, room);
    return { role: "assistant", parts, ...finishOf(memberOf(choice, "finish_reason"), room) };
  });
  return JSON.stringify(messages);
}

function finishOf(reason: unknown, room: Room): { finish_reason?: string } {
  return typeof reason === "string" ? { finish_reason: room.word(reason) } : {};
}

interface StreamedChoice {
  text: string;
  calls: Map<unknown, { id: unknown; name: string; text: string }>;
  reason: unknown;
}

/** The same, of the events of a stream; what goes beyond the room is not kept in the first place. */
export class StreamedContent {
  readonly #choices = new Map<unknown, StreamedChoice>();
  #kept = 0;

  add(events: string): void {
    if (this.#kept >= mostKept) return;
    for (const event of events.split("\n\n")) {
      if (event.startsWith("data: {")) this.#addChunk(parsed(event.slice("data: ".length)));
    }
  }

  messages(redact: Redact): string {
    const room = new Room(redact);
    const messages = [...this.#choices.values()].map(({ text, calls, reason }): Message => {
      const parts: Part[] = text === "" ? [] : [textPart(text, room)];
      const made = [...calls.values()].map((call) => ({
        id: call.id,
        function: { name: call.name, arguments: call.text },
      }));
      return { role: "assistant", parts: [...parts, ...callsOf(made, room)], ...finishOf(reason, room) };
    });
    return JSON.stringify(messages);
  }

  #addChunk(chunk: unknown): void {
    const choices = memberOf(chunk, "choices");
    for (const choice of Array.isArray(choices) ? choices : []) {
      const index = memberOf(choice, "index");
      let known = this.#choices.get(index);
      if (!known) {
        if (this.#choices.size >= mostParts) return;
        known = { text: "", calls: new Map(), reason: undefined };
        this.#choices.set(index, known);
      }
      known.reason = memberOf(choice, "finish_reason") ?? known.reason;
      const delta = memberOf(choice, "delta");
      const text = memberOf(delta, "content") ?? memberOf(choice, "text");
      if (typeof text === "string") known.text += this.#keep(text);
      const calls = memberOf(delta, "tool_calls");
      for (const call of Array.isArray(calls) ? calls : []) this.#addCall(known, call);
    }
  }

  #addCall({ calls }: StreamedChoice, call: unknown): void {
    const index = memberOf(call, "index");
    const called = memberOf(call, "function");
    const [name, text] = [memberOf(called, "name"), memberOf(called, "arguments")];
    let known = calls.get(index);
    if (!known) {
      if (calls.size >= mostParts) return;
      known = { id: memberOf(call, "id"), name: "", text: "" };
      calls.set(index, known);
    }
    if (typeof name === "string" && name !== "") known.name = name;
    if (typeof text === "string") known.text += this.#keep(text);
  }

  #keep(text: string): string {
    const kept = text.slice(0, Math.max(0, mostKept - this.#kept));
    this.#kept += kept.length;
    return kept;
  }
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
