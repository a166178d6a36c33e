// Prompts and answers for a trace, if the operator enables them: shortened, only text, without credentials.

import type { TracedRequest } from "../domain/usage/trace.ts";
import type { Dialect } from "../requests/dialects/dialect.ts";
import { dialects } from "../requests/dialects/dialects.ts";
import { maxSaid, type Said, type SaidCall, type SaidPiece } from "../requests/dialects/said.ts";

/** Maximum characters of all prompts, and of all answers, of one request. */
export const maxContent = 8_192;
const maxWordLength = 64;
const maxSecretLength = 4_096;
/** Maximum characters of a stream that are kept until secrets are removed. */
const maxKept = maxContent + maxSecretLength;

/** Removes secrets from a text. */
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

/** Cuts texts to a shared maximum of characters, and removes their secrets. */
class Room {
  readonly #redact: Redact;
  #remaining = maxContent;

  constructor(redact: Redact) {
    this.#redact = redact;
  }

  get full(): boolean {
    return this.#remaining <= 0;
  }

  /**
   * Returns the value if it is text, redacted and cut to the length of a word. A word does not count toward the
   * maximum. Returns an empty text for other values.
   */
  word(value: unknown): string {
    return typeof value === "string" ? this.#redact(value.slice(0, maxSecretLength)).slice(0, maxWordLength) : "";
  }

  clip(text: string): string {
    const remaining = Math.max(0, this.#remaining);
    this.#remaining -= text.length;
    // A secret that is cut in two could not be recognised, so the text is redacted before it is cut.
    const safe = this.#redact(text.slice(0, remaining + maxSecretLength));
    return safe.length <= remaining && text.length <= remaining ? safe : `${safe.slice(0, remaining)}…`;
  }
}

/** Returns JSON in the form of `gen_ai.input.messages`: the last messages that fit. */
export function inputMessages({ operation, body }: TracedRequest, redact: Redact): string {
  const room = new Room(redact);
  const { asked, promptMember } = dialects[operation];
  const messages: Message[] = [];
  for (const said of asked(body[promptMember])) {
    if (room.full) break;
    messages.push(messageOf(said, room));
  }
  return JSON.stringify(messages.toReversed());
}

/** Returns JSON in the form of `gen_ai.output.messages` for a whole answer. */
export function outputMessages(said: readonly Said[], redact: Redact): string {
  const room = new Room(redact);
  return JSON.stringify(said.map((one) => messageOf(one, room)));
}

/** Returns a message with its parts. Of images, sounds and files, only the kind is included. */
function messageOf({ role: said, parts: given, calls, resultOf, reason }: Said, room: Room): Message {
  const role = room.word(said);
  const parts = given.map(({ text, type }) => (text === undefined ? { type: room.word(type) } : textPart(text, room)));
  if (resultOf !== undefined) {
    const response = parts.map((part) => ("content" in part ? part.content : "")).join("");
    return { role, parts: [{ type: "tool_call_response", id: room.word(resultOf), response }] };
  }
  const made = calls.map((call) => callPart(call, room));
  return {
    role,
    parts: [...parts, ...made],
    ...(typeof reason === "string" ? { finish_reason: room.word(reason) } : {}),
  };
}

function callPart({ id, name, text }: SaidCall, room: Room): Part {
  return {
    type: "tool_call",
    ...(typeof id === "string" ? { id: room.word(id) } : {}),
    name: room.word(name),
    arguments: room.clip(typeof text === "string" ? text : ""),
  };
}

function textPart(text: string, room: Room) {
  return { type: "text", content: room.clip(text) };
}

interface StreamedAnswer {
  text: string;
  calls: Map<unknown, { id: unknown; name: string; text: string }>;
  reason: unknown;
}

/** Collects the content of a stream; text beyond the limit is not kept. */
export class StreamedContent {
  readonly #answers = new Map<unknown, StreamedAnswer>();
  readonly #piecesOf: Dialect["streamed"];
  #kept = 0;

  /** `piecesOf` returns the pieces in a chunk. */
  constructor(piecesOf: Dialect["streamed"]) {
    this.#piecesOf = piecesOf;
  }

  add(events: string): void {
    if (this.#kept >= maxKept) return;
    for (const event of events.split("\n\n")) {
      const line = event.startsWith("event: ") ? event.slice(event.indexOf("\n") + 1) : event;
      if (!line.startsWith("data: {")) continue;
      for (const piece of this.#piecesOf(parsed(line.slice("data: ".length)))) this.#addPiece(piece);
    }
  }

  messages(redact: Redact): string {
    const said = [...this.#answers.values()].map(({ text, calls, reason }) => {
      return { role: "assistant", parts: text === "" ? [] : [{ text }], calls: [...calls.values()], reason };
    });
    return outputMessages(said, redact);
  }

  #addPiece({ index, text, calls, reason }: SaidPiece): void {
    let known = this.#answers.get(index);
    if (!known) {
      if (this.#answers.size >= maxSaid) return;
      known = { text: "", calls: new Map(), reason: undefined };
      this.#answers.set(index, known);
    }
    known.reason = reason ?? known.reason;
    if (typeof text === "string") known.text += this.#keep(text);
    for (const call of calls) this.#addCall(known, call);
  }

  #addCall({ calls }: StreamedAnswer, { index, id, name, text }: SaidPiece["calls"][number]): void {
    let known = calls.get(index);
    if (!known) {
      if (calls.size >= maxSaid) return;
      known = { id, name: "", text: "" };
      calls.set(index, known);
    }
    if (typeof name === "string" && name !== "") known.name = name;
    if (typeof text === "string") known.text += this.#keep(text);
  }

  #keep(text: string): string {
    const kept = text.slice(0, Math.max(0, maxKept - this.#kept));
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
