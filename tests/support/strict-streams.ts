// Streams as strict servers send them, one for each format, and strict readers of what clients get.
import type { Operation } from "../../src/domain/models/operation.ts";

export type StreamFormat = Extract<
  Operation,
  "chat" | "completion" | "response" | "message" | "transcription" | "image"
>;
export type Json = Record<string, unknown>;

/** One event of a server. */
export interface StrictEvent {
  /** What it is for, as tests name it. */
  readonly name: string;
  readonly text: string;
  /** Whether it holds a part of the answer that no other event repeats. */
  readonly isContent: boolean;
}

/** What a client reads of an answer. */
export interface ReadAnswer {
  text: string;
  calls: { name: string; arguments: string }[];
  reason: string | undefined;
  outputTokens: number | undefined;
}

export interface StrictStream {
  readonly events: readonly StrictEvent[];
  readonly request: Json;
  /** The same answer, whole. */
  readonly whole: Json;
  /** What tells an error in the place of an event. */
  readonly fault: string;
}

const text = "Grüße aus 東京";
const pieces = ["Grüße ", "aus 東京"] as const;
const inputPieces = ['{"place":', '"Zürich"}'] as const;
const input = inputPieces.join("");
const call = { id: "call_1", name: "look" };

function data(value: unknown): string {
  return `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
}

function named(event: Json, name = String(event["type"]), isContent = false): StrictEvent {
  return { name, text: `event: ${String(event["type"])}\n${data(event)}`, isContent };
}

const chunk = (choices: Json[], more: Json = {}) => ({
  ...{ id: "chatcmpl-9", object: "chat.completion.chunk", created: 3, model: "upstream" },
  choices,
  ...more,
});
const delta = (fields: Json, finish_reason: string | null = null) =>
  chunk([{ index: 0, delta: fields, finish_reason }]);
const chatUsage = { prompt_tokens: 30, completion_tokens: 19, total_tokens: 49 };
const called = (fields: Json) => delta({ tool_calls: [{ index: 0, ...fields }] });

function chatEvent(name: string, value: unknown, isContent = false): StrictEvent {
  return { name, text: data(value), isContent };
}

const chat: StrictStream = {
  request: { messages: [], stream_options: { include_usage: true } },
  events: [
    chatEvent("role", delta({ role: "assistant", content: "" })),
    ...pieces.map((piece) => chatEvent("text", delta({ content: piece }), true)),
    chatEvent("call", called({ id: call.id, type: "function", function: { name: call.name, arguments: "" } }), true),
    ...inputPieces.map((piece) => chatEvent("arguments", called({ function: { arguments: piece } }), true)),
    chatEvent("finish", delta({}, "tool_calls")),
    chatEvent("usage", chunk([], { usage: chatUsage })),
    chatEvent("end", "[DONE]"),
  ],
  whole: {
    ...{ id: "chatcmpl-9", object: "chat.completion", created: 3, model: "upstream", usage: chatUsage },
    choices: [
      {
        index: 0,
        message: {
          ...{ role: "assistant", content: text },
          tool_calls: [{ id: call.id, type: "function", function: { name: call.name, arguments: input } }],
        },
        finish_reason: "tool_calls",
      },
    ],
  },
  fault: data({ error: { message: "out of memory", type: "server_error" } }),
};

const legacyChunk = (said: string, finish_reason: string | null, more: Json = {}) => ({
  ...{ id: "cmpl-9", object: "text_completion", created: 3, model: "upstream" },
  choices: [{ index: 0, text: said, logprobs: null, finish_reason }],
  ...more,
});

const completion: StrictStream = {
  request: { prompt: "Hi", stream_options: { include_usage: true } },
  events: [
    ...pieces.map((piece) => chatEvent("text", legacyChunk(piece, null), true)),
    chatEvent("finish", legacyChunk("", "stop")),
    chatEvent("usage", { ...legacyChunk("", null), choices: [], usage: chatUsage }),
    chatEvent("end", "[DONE]"),
  ],
  whole: legacyChunk(text, "stop", { usage: chatUsage }),
  fault: chat.fault,
};

const part = { type: "output_text", text, annotations: [], logprobs: [] };
const messageItem = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [part] };
const callItem = {
  ...{ id: "fc_1", type: "function_call", status: "completed", call_id: call.id },
  ...{ name: call.name, arguments: input },
};
const responseObject = (status: string, more: Json = {}) => ({
  ...{ id: "resp_9", object: "response", created_at: 3, model: "upstream", status, output: [], error: null },
  ...{ incomplete_details: null, usage: null },
  ...more,
});
const completed = responseObject("completed", {
  output: [messageItem, callItem],
  usage: { input_tokens: 30, output_tokens: 19, total_tokens: 49 },
});
const inMessage = { item_id: "msg_1", output_index: 0, content_index: 0 };
const inCall = { item_id: "fc_1", output_index: 1 };
const responseEvents: readonly (readonly [Json, boolean?])[] = [
  [{ type: "response.created", response: responseObject("in_progress") }],
  [{ type: "response.in_progress", response: responseObject("in_progress") }],
  [
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { ...messageItem, status: "in_progress", content: [] },
    },
  ],
  [{ type: "response.content_part.added", ...inMessage, part: { ...part, text: "" } }],
  ...pieces.map((piece) => [{ type: "response.output_text.delta", ...inMessage, delta: piece }, true] as const),
  [{ type: "response.output_text.done", ...inMessage, text }],
  [{ type: "response.content_part.done", ...inMessage, part }],
  [{ type: "response.output_item.done", output_index: 0, item: messageItem }],
  [
    {
      type: "response.output_item.added",
      output_index: 1,
      item: { ...callItem, status: "in_progress", arguments: "" },
    },
  ],
  ...inputPieces.map(
    (piece) => [{ type: "response.function_call_arguments.delta", ...inCall, delta: piece }, true] as const,
  ),
  [{ type: "response.function_call_arguments.done", ...inCall, arguments: input }],
  [{ type: "response.output_item.done", output_index: 1, item: callItem }],
  [{ type: "response.completed", response: completed }],
];

const response: StrictStream = {
  request: { input: "Hi" },
  events: responseEvents.map(([event, isContent = false], sequence_number) =>
    named({ ...event, sequence_number }, String(event["type"]), isContent),
  ),
  whole: completed,
  fault: named({ type: "error", code: "server_error", message: "out of memory", param: null, sequence_number: 3 }).text,
};

const wholeMessage = {
  ...{ id: "msg_9", type: "message", role: "assistant", model: "upstream" },
  content: [
    { type: "text", text },
    { type: "tool_use", id: call.id, name: call.name, input: JSON.parse(input) as Json },
  ],
  ...{ stop_reason: "tool_use", stop_sequence: null, usage: { input_tokens: 30, output_tokens: 19 } },
};

const message: StrictStream = {
  request: { messages: [], max_tokens: 99 },
  events: [
    named({
      type: "message_start",
      message: { ...wholeMessage, content: [], stop_reason: null, usage: { input_tokens: 30, output_tokens: 1 } },
    }),
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    ...pieces.map((piece) =>
      named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: piece } }, "text_delta", true),
    ),
    named({ type: "content_block_stop", index: 0 }),
    named(
      {
        type: "content_block_start",
        index: 1,
        content_block: { type: "tool_use", id: call.id, name: call.name, input: {} },
      },
      "content_block_start of a call",
      true,
    ),
    ...inputPieces.map((partial_json) =>
      named(
        { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json } },
        "input_json_delta",
        true,
      ),
    ),
    named({ type: "content_block_stop", index: 1 }),
    named({
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { output_tokens: 19 },
    }),
    named({ type: "message_stop" }),
  ],
  whole: wholeMessage,
  fault: named({ type: "error", error: { type: "api_error", message: "out of memory" } }).text,
};

const transcription: StrictStream = {
  request: { file: { seconds: 3 }, stream: true },
  events: [
    ...pieces.map((piece) => named({ type: "transcript.text.delta", delta: piece }, "transcript.text.delta", true)),
    named({ type: "transcript.text.done", text, usage: { type: "tokens", input_tokens: 30, output_tokens: 19 } }),
  ],
  whole: { text, usage: { type: "tokens", input_tokens: 30, output_tokens: 19 } },
  fault: data({ error: { message: "out of memory", type: "server_error" } }),
};

const drawn = (b64_json: string) => ({ b64_json, created_at: 3, size: "1x1", quality: "low" });
const image: StrictStream = {
  request: { prompt: "A mill", n: 2, stream: true },
  events: [
    named({ type: "image_generation.partial_image", partial_image_index: 0, ...drawn("AAAA") }),
    named({ type: "image_generation.completed", ...drawn("BBBB") }, "image_generation.completed", true),
    named({ type: "image_generation.completed", ...drawn("CCCC") }, "image_generation.completed", true),
  ],
  whole: { created: 3, data: [{ b64_json: "BBBB" }, { b64_json: "CCCC" }] },
  fault: data({ error: { message: "out of memory", type: "server_error" } }),
};

export const strictStreams: Readonly<Record<StreamFormat, StrictStream>> = {
  ...{ chat, completion, response, message, transcription, image },
};

/** What clients read of those answers; the formats name the reason differently. */
export const wholeAnswer: ReadAnswer = {
  text,
  calls: [{ name: call.name, arguments: input }],
  reason: "calls",
  outputTokens: 19,
};

export class StreamFault extends Error {
  override readonly name = "StreamFault";
}

/** A stream that ended by an error event has `error`, and no end of its own. */
export interface ReadStream extends ReadAnswer {
  error: string | undefined;
}

/** Reads `text` as a strict client of the format does. Throws StreamFault at the first thing that such a client would not take. */
export function readStrictly(format: StreamFormat, text: string): ReadStream {
  const events = eventsIn(text);
  if (format === "chat" || format === "completion") return readChunks(events, format);
  if (format === "response") return readResponse(events);
  if (format === "message") return readMessage(events);
  return readTask(events, format);
}

interface ClientEvent {
  name: string | undefined;
  data: string;
}

function eventsIn(text: string): ClientEvent[] {
  const events: ClientEvent[] = [];
  let event: Partial<ClientEvent> = {};
  if (text !== "" && !text.endsWith("\n")) throw new StreamFault(`ends inside a line: ${text.slice(-60)}`);
  for (const line of text.split("\n").slice(0, -1)) {
    if (line.startsWith("event: ")) event.name = line.slice(7);
    else if (line.startsWith("data: ") && event.data === undefined) event.data = line.slice(6);
    else if (line === "" && event.data !== undefined) {
      events.push({ name: event.name, data: event.data });
      event = {};
    } else if (!line.startsWith(":")) throw new StreamFault(`a line that is none of an event: ${line.slice(0, 60)}`);
  }
  if (event.data !== undefined) throw new StreamFault("ends inside an event");
  return events;
}

function begun(): ReadStream {
  return { text: "", calls: [], reason: undefined, outputTokens: undefined, error: undefined };
}

function errorOf(value: Json): string | undefined {
  const error = value["error"];
  return typeof error === "object" && error !== null ? String((error as Json)["message"]) : undefined;
}

function require(isSo: unknown, what: string): asserts isSo {
  if (!isSo) throw new StreamFault(what);
}

const reasonNames: Readonly<Record<string, string>> = { tool_calls: "calls", tool_use: "calls", end_turn: "stop" };

function readChunks(events: readonly ClientEvent[], format: StreamFormat): ReadStream {
  const read = begun();
  let hasRole = format === "completion";
  for (const [at, { data: written }] of events.entries()) {
    if (written === "[DONE]") {
      require(at === events.length - 1, "something follows [DONE]");
      require(read.reason !== undefined, "[DONE] without a finish_reason");
      return read;
    }
    const value = JSON.parse(written) as Json;
    read.error = errorOf(value);
    if (read.error !== undefined) {
      require(at === events.length - 1, "something follows the error");
      return read;
    }
    const choices = value["choices"] as Json[];
    if (choices.length === 0) {
      require(read.reason !== undefined, "usage before the finish_reason");
      require(read.outputTokens === undefined, "usage twice");
      read.outputTokens = (value["usage"] as Json)["completion_tokens"] as number;
    }
    for (const choice of choices) {
      require(read.reason === undefined, "a choice behind the finish_reason");
      const said = (choice["delta"] ?? choice) as Json;
      if (format === "chat") {
        // Servers may repeat the role.
        require(hasRole || said["role"] === "assistant", "the first delta has no role");
        hasRole = true;
      }
      read.text += String(said["content"] ?? said["text"] ?? "");
      for (const piece of (said["tool_calls"] ?? []) as Json[]) {
        const of = piece["function"] as Json;
        const index = piece["index"] as number;
        const known = read.calls[index];
        require(known !== undefined ||
          (index === read.calls.length && of["name"]), "a piece of a call that did not begin");
        if (known) {
          require(of["name"] === undefined, "a call that begins twice");
          known.arguments += String(of["arguments"] ?? "");
        } else read.calls.push({ name: String(of["name"]), arguments: String(of["arguments"] ?? "") });
      }
      const reason = choice["finish_reason"] as string | null;
      if (reason !== null) read.reason = reasonNames[reason] ?? reason;
    }
  }
  throw new StreamFault("ends without [DONE] or an error");
}

function readMessage(events: readonly ClientEvent[]): ReadStream {
  const read = begun();
  let open: Json | undefined;
  let count = 0;
  for (const [at, { name, data: written }] of events.entries()) {
    const value = JSON.parse(written) as Json;
    const type = value["type"];
    require(type === name, `the event ${name} is named ${String(type)} inside`);
    if (type === "error") {
      read.error = errorOf(value);
      require(at === events.length - 1, "something follows the error");
      return read;
    }
    if (type === "ping") continue;
    require((at === 0) === (type === "message_start"), `${String(type)} at ${at}`);
    require(type === "message_stop" || read.reason === undefined, `${String(type)} behind message_delta`);
    if (type === "content_block_start") {
      require(open === undefined && value["index"] === count, "a block begins while another is open, or out of order");
      open = value["content_block"] as Json;
      if (open["type"] === "tool_use") read.calls.push({ name: String(open["name"]), arguments: "" });
      else read.text += String(open["text"]);
    } else if (type === "content_block_delta") {
      require(open !== undefined && value["index"] === count, "a delta of a block that is not open");
      const piece = value["delta"] as Json;
      const last = read.calls.at(-1);
      if (open["type"] === "text" && piece["type"] === "text_delta") read.text += String(piece["text"]);
      else if (open["type"] === "tool_use" && piece["type"] === "input_json_delta" && last) {
        last.arguments += String(piece["partial_json"]);
      } else throw new StreamFault(`${String(piece["type"])} in a block of the type ${String(open["type"])}`);
    } else if (type === "content_block_stop") {
      require(open !== undefined && value["index"] === count, "a stop of a block that is not open");
      open = undefined;
      count++;
    } else if (type === "message_delta") {
      require(open === undefined, "message_delta in an open block");
      const reason = (value["delta"] as Json)["stop_reason"] as string;
      read.reason = reasonNames[reason] ?? reason;
      read.outputTokens = (value["usage"] as Json)["output_tokens"] as number;
    } else if (type === "message_stop") {
      require(read.reason !== undefined, "message_stop without message_delta");
      require(at === events.length - 1, "something follows message_stop");
      return read;
    }
  }
  throw new StreamFault("ends without message_stop or an error");
}

interface OpenItem {
  item: Json;
  said: string;
  hasPart: boolean;
  isTextDone: boolean;
  isPartDone: boolean;
}

function readResponse(events: readonly ClientEvent[]): ReadStream {
  const read = begun();
  /** By their place; items may be open side by side. */
  const open = new Map<unknown, OpenItem>();
  const items: Json[] = [];
  let begunItems = 0;
  let lastNumber = -1;
  for (const [at, { name, data: written }] of events.entries()) {
    const value = JSON.parse(written) as Json;
    const type = String(value["type"]);
    require(type === name, `the event ${name} is named ${type} inside`);
    const isLast = at === events.length - 1;
    if (type === "error" || type === "response.failed") {
      read.error = type === "error" ? String(value["message"]) : errorOf(value["response"] as Json);
      require(isLast, "something follows the error");
      return read;
    }
    const number = value["sequence_number"] as number;
    require(number > lastNumber, `sequence number ${number} behind ${lastNumber}`);
    lastNumber = number;
    require((at === 0) === (type === "response.created"), `${type} at ${at}`);
    const place = value["output_index"] as number;
    if (type === "response.output_item.added") {
      require(place === begunItems++, "an item begins out of order");
      open.set(place, {
        ...{ item: value["item"] as Json, said: "", hasPart: false, isTextDone: false, isPartDone: false },
      });
    } else if (type === "response.completed") {
      require(open.size === 0, "completed in an open item");
      require(isLast, "something follows response.completed");
      const answer = value["response"] as Json;
      require(JSON.stringify(answer["output"]) === JSON.stringify(items), "the response has other items");
      read.reason = read.calls.length > 0 ? "calls" : "stop";
      read.outputTokens = (answer["usage"] as Json | null)?.["output_tokens"] as number;
      return read;
    } else if (place !== undefined) {
      const item = open.get(place);
      require(item !== undefined, `${type} of an item that is not open`);
      readItemEvent(type, value, item);
      if (type !== "response.output_item.done") continue;
      open.delete(place);
      items[place] = value["item"] as Json;
      if (item.item["type"] === "message") read.text += item.said;
      else read.calls.push({ name: String((value["item"] as Json)["name"]), arguments: item.said });
    }
  }
  throw new StreamFault("ends without response.completed or an error");
}

function readItemEvent(type: string, value: Json, open: OpenItem): void {
  const isMessage = open.item["type"] === "message";
  if (type === "response.content_part.added") {
    require(isMessage && !open.hasPart, "a part begins twice, or outside of a message");
    open.hasPart = true;
  } else if (type === "response.output_text.delta") {
    require(isMessage && open.hasPart && !open.isTextDone, "text outside of a part");
    open.said += String(value["delta"]);
  } else if (type === "response.function_call_arguments.delta") {
    require(!isMessage && !open.isTextDone, "arguments outside of a call");
    open.said += String(value["delta"]);
  } else if (type === "response.output_text.done" || type === "response.function_call_arguments.done") {
    require(!open.isTextDone && (value["text"] ?? value["arguments"]) === open.said, `${type} tells another text`);
    open.isTextDone = true;
  } else if (type === "response.content_part.done") {
    require(open.isTextDone && !open.isPartDone, "a part ends before its text, or twice");
    open.isPartDone = true;
  } else if (type === "response.output_item.done") {
    require(open.isTextDone && (!isMessage || open.isPartDone), "an item ends before its parts");
  }
}

function readTask(events: readonly ClientEvent[], format: StreamFormat): ReadStream {
  const read = begun();
  for (const { data: written } of events) {
    if (written === "[DONE]") continue;
    const value = JSON.parse(written) as Json;
    read.error = errorOf(value);
    if (read.error !== undefined) return read;
    require(read.reason === undefined || format === "image", "something follows the end");
    if (value["type"] === "transcript.text.delta") read.text += String(value["delta"]);
    if (value["type"] === "image_generation.completed") read.text += String(value["b64_json"]);
    if (value["type"] === "transcript.text.done")
      read.outputTokens = (value["usage"] as Json)["output_tokens"] as number;
    if (value["type"] === "transcript.text.done" || value["type"] === "image_generation.completed")
      read.reason = "stop";
  }
  require(read.reason !== undefined, "ends without its last event");
  return read;
}
