// Finds pieces of texts in the stream events of each API format, and finds which texts an event ends.
import { isContainer, isNoText, type TextSlot, textsAt, textsIn } from "./text-slots.ts";

export type Event = Record<string, unknown>;

/** A piece of a text. `key` identifies the text within the answer. */
export interface PieceSlot extends TextSlot {
  readonly key: string;
  /** Returns an event that contains only `text`, as another piece of this text. */
  with(text: string): Event;
}

export interface EventTexts {
  readonly pieces: readonly PieceSlot[];
  /** Texts that the event contains as a whole. Most of them already arrived in pieces. */
  readonly wholes: readonly TextSlot[];
  /** Beginnings of the keys of texts that have ended. The beginning "" means all texts. */
  readonly ends: readonly string[];
}

const nothing: readonly never[] = [];
const wholeMembers = [
  "text",
  "arguments",
  "input",
  "refusal",
  "transcript",
  "code",
  "content",
  "item",
  "part",
] as const;
const lasting: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);
const blockTexts: Readonly<Record<string, string>> = { text: "text_delta", thinking: "thinking_delta" };

export function textsOfEvent(event: Event): EventTexts {
  if (Array.isArray(event["choices"])) return ofChoices(event, event["choices"]);
  const type = String(event["type"]);
  if (type.startsWith("content_block_") || type.startsWith("message_")) return ofMessages(event, type);
  return ofTyped(event, type);
}

/** Names of members that repeat the text of their choice. */
const repeated = ["logprobs", "token_ids", "prompt_token_ids", "prompt_logprobs"] as const;

/** Finds texts in events of the chat completions and completions formats. */
function ofChoices(event: Event, choices: readonly unknown[]): EventTexts {
  const pieces: PieceSlot[] = [];
  const wholes = othersIn(event, "choices");
  const ends: string[] = [];
  for (const choice of choices) {
    if (!isContainer(choice)) continue;
    const index = Number(choice["index"] ?? 0);
    const { usage: _, choices: __, headrace: ___, ...head } = event;
    const made = (said: Event): Event => ({ ...head, choices: [{ index, ...said, finish_reason: null }] });
    for (const name of repeated) if (name in choice) choice[name] = null;
    wholes.push(...othersIn(choice, "text", "delta"));
    addPiece(pieces, choice, "text", `${index}/text`, (text) => made({ text }));
    if (isContainer(choice["delta"])) {
      ofDelta(pieces, choice["delta"], index, (delta) => made({ delta }));
    }
    if (typeof choice["finish_reason"] === "string") ends.push(`${index}/`);
  }
  return { pieces, wholes, ends };
}

/** Finds texts in members that only some servers send. */
function othersIn(container: Event, ...known: readonly string[]): TextSlot[] {
  const others = Object.keys(container).filter((name) => !known.includes(name) && !isNoText(name));
  return others.flatMap((name) => textsAt(container, name));
}

function ofDelta(pieces: PieceSlot[], delta: Event, index: number, made: (delta: Event) => Event): void {
  // The member `reasoning_details` repeats the reasoning in another member of the same delta.
  if ("reasoning_details" in delta) delta["reasoning_details"] = undefined;
  for (const [name, value] of Object.entries(delta)) {
    if (name === "role" || name === "id") continue;
    addPiece(pieces, delta, name, `${index}/${name}`, (text) => made({ [name]: text }));
    if (isContainer(value) && !ownParts.has(name)) {
      addNested(pieces, value, `${index}/${name}`, (changed) => made({ [name]: changed }));
    }
    if (isContainer(value) && name === "audio") {
      addPiece(pieces, value, "transcript", `${index}/audio`, (transcript) => made({ audio: { transcript } }));
    }
    if (isContainer(value) && name === "function_call") {
      addPiece(pieces, value, "arguments", `${index}/call`, (text) => made({ function_call: { arguments: text } }));
    }
  }
  for (const call of Array.isArray(delta["tool_calls"]) ? delta["tool_calls"] : []) {
    if (!isContainer(call)) continue;
    const callIndex = call["index"] ?? 0;
    for (const [kind, member] of [["function", "arguments"] as const, ["custom", "input"] as const]) {
      const called = call[kind];
      if (!isContainer(called)) continue;
      const key = `${index}/calls/${callIndex}`;
      addPiece(pieces, called, member, key, (text) =>
        made({ tool_calls: [{ index: callIndex, [kind]: { [member]: text } }] }),
      );
    }
  }
}

/** Names of members in a delta that are handled elsewhere. Sound has no text. */
const ownParts: ReadonlySet<string> = new Set(["audio", "function_call", "tool_calls"]);

/**
 * Adds pieces of texts in nested parts. Some servers put an answer or its reasoning into such parts. Pieces at the same
 * path belong to one text.
 */
function addNested(pieces: PieceSlot[], value: object, prefix: string, made: (changed: unknown) => Event): void {
  const first = structuredClone(value) as Event;
  textsIn(value as Event).forEach((slot, at) => {
    const other = (text: string) => {
      const copy = structuredClone(first);
      for (const [index, { put }] of textsIn(copy).entries()) put(index === at ? text : "");
      return made(copy);
    };
    pieces.push({ ...slot, key: `${prefix}/${at}`, with: other });
  });
}

function ofMessages(event: Event, type: string): EventTexts {
  const { index, delta, content_block: block, message } = event;
  const pieces: PieceSlot[] = [];
  const made = (said: Event): Event => ({ type: "content_block_delta", index, delta: said });
  if (type === "content_block_start" && isContainer(block)) {
    const kind = blockTexts[String(block["type"])];
    if (kind === undefined) return { pieces, wholes: textsAt(event, "content_block"), ends: nothing };
    const member = String(block["type"]);
    addPiece(pieces, block, member, `${index}/${member}`, (text) => made({ type: kind, [member]: text }));
  }
  if (type === "content_block_delta" && isContainer(delta)) {
    for (const member of Object.keys(delta)) {
      if (isNoText(member)) continue;
      addPiece(pieces, delta, member, `${index}/${member}`, (text) => made({ type: delta["type"], [member]: text }));
    }
    return {
      pieces,
      wholes: Object.keys(delta).flatMap((name) => (isContainer(delta[name]) ? textsAt(delta, name) : [])),
      ends: nothing,
    };
  }
  if (type === "content_block_stop") return { pieces, wholes: nothing, ends: [`${index}/`] };
  if (type === "message_start" && isContainer(message))
    return { pieces, wholes: textsAt(message, "content"), ends: nothing };
  return { pieces, wholes: nothing, ends: type === "message_delta" || type === "message_stop" ? [""] : nothing };
}

/** Finds texts in events of Responses and tasks. In these events, the type and the indices identify the text. */
function ofTyped(event: Event, type: string): EventTexts {
  const { item_id: item, output_index: output, content_index: content, summary_index: summary, response } = event;
  const at = `${item ?? output ?? ""}/${content ?? summary ?? 0}/`;
  if (Array.isArray(event["logprobs"])) event["logprobs"] = [];
  if (type.endsWith(".delta") && typeof event["delta"] === "string") {
    const pieces: PieceSlot[] = [];
    const isBytes = type.includes("audio") && !type.includes("transcript");
    const key = `${type.slice(0, -".delta".length)}/${at}`;
    if (!isBytes) addPiece(pieces, event, "delta", key, (delta) => ({ ...event, delta }), type.includes("arguments"));
    return { pieces, wholes: nothing, ends: nothing };
  }
  const wholes = wholeMembers.flatMap((name) => textsAt(event, name));
  if (isContainer(response)) wholes.push(...textsAt(response, "output"));
  const ends = lasting.has(type)
    ? [""]
    : type.endsWith(".done")
      ? [`${type.slice(0, -".done".length)}/${at}`]
      : nothing;
  return { pieces: nothing, wholes, ends };
}

function addPiece(
  pieces: PieceSlot[],
  container: Event,
  name: string,
  key: string,
  made: (text: string) => Event,
  isJson = name === "arguments" || name === "partial_json",
): void {
  const text = container[name];
  if (typeof text !== "string") return;
  const put = (changed: string) => {
    container[name] = changed;
  };
  pieces.push({ key, text, isJson, put, with: made });
}

/** Sets the finish reason for withheld content, in an answer or in the event that ends an answer. */
export function sayWithheld(said: Event): void {
  const { choices, delta, response, type } = said;
  for (const choice of Array.isArray(choices) ? choices : []) {
    if (isContainer(choice) && typeof choice["finish_reason"] === "string") choice["finish_reason"] = "content_filter";
  }
  if (type === "message_delta" && isContainer(delta)) withRefusal(delta);
  if (type === "message") withRefusal(said);
  if (lasting.has(type) && isContainer(response)) {
    said["type"] = "response.incomplete";
    sayWithheld(response as Event);
  }
  if (said["object"] === "response") {
    said["status"] = "incomplete";
    said["incomplete_details"] = { reason: "content_filter" };
  }
  // The mark `headrace` says that a quota ended the answer. This would be wrong here.
  if ("headrace" in said) said["headrace"] = undefined;
}

function withRefusal(said: Event): void {
  said["stop_reason"] = "refusal";
  said["stop_sequence"] = null;
}
