// The Messages API, Anthropic's format. In this format, each message is a list of blocks.
import { generates } from "../../../domain/models/operation.ts";
import { messageCountRequest, messageRequest } from "../../../wire/messages.ts";
import type { AnswerStream } from "../answer.ts";
import { isObject, itemsSaid, saidIn } from "../conversation/said.ts";
import { hasMediaPart, shownTokens } from "../conversation/shown-tokens.ts";
import type { Dialect } from "../dialect.ts";
import { choicesSaid, piecesSaid, readReported as readChunkReported } from "../openai/said.ts";
import type { ReportedAnswer, Said, SaidPiece } from "../said.ts";
import { type PassedWhole, passedAnswer } from "../translation/passed-answer.ts";
import { type PassedEvents, PassedStream } from "../translation/passed-stream.ts";
import { messageFormat } from "./format.ts";
import { isPlain } from "./plain-request.ts";
import { openedMessages } from "./read-messages.ts";
import { ObservedMessage } from "./stopped-message.ts";
import { StrictMessage, strictMessage } from "./strict-message.ts";
import { UsageReading } from "./usage.ts";

/** The event that keeps a stream alive. Claude Code gives up after some minutes without a byte. */
const ping = 'event: ping\ndata: {"type":"ping"}\n\n';

/** Names of the members that the model reads. */
const shown = ["system", "messages", "tools", "output_config"];

const events: PassedEvents = {
  format: messageFormat,
  answerMember: "message",
  last: new Set(["message_stop", "error"]),
  forgotten: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  errorEvent,
  repair: (head) => new StrictMessage(head),
  observer: () => new ObservedMessage(),
};

const call = Buffer.from('"tool_use"');

const whole: PassedWhole = {
  format: messageFormat,
  list: "content",
  strict: (answer, head) => strictMessage(answer, head.usage()),
  isUsual: (found) =>
    found.isText("type", "message") &&
    // Most answers have one of these two stop reasons. An answer with any other reason is parsed, because Anthropic's
    // API may not know that reason.
    (found.isText("stop_reason", "end_turn") || found.isText("stop_reason", "max_tokens")) &&
    !found.holds("content", call) &&
    found.isNothing("error") &&
    // An error of another vendor's server has a member `object`.
    found.isNothing("object"),
  usage: (found) => new UsageReading().add(found.parsedValueOf("usage")),
};

export const message: Dialect = {
  operation: "message",
  endpoint: "Messages",
  capability: "chat",
  spanName: "chat",

  maker: "anthropic",
  format: messageFormat,
  task: undefined,
  schema: messageRequest,
  countSchema: messageCountRequest,
  rewritten: undefined,
  shownMembers: shown,
  promptTokens: (body) => shownTokens(body, shown),
  isPlain,
  opened: openedMessages,
  namesUserInMetadata: true,
  isStoredByDefault: false,
  asksForUsage: false,
  limitMembers: ["max_tokens"],
  minLimit,
  isLimitRequired: true,
  promptMember: "messages",
  isConversation: true,
  generates: generates.message,
  knowsNewerLimit: true,
  width: () => 1,
  hasMedia: hasMediaPart,

  answerList: "content",
  answerObject: "message",
  chunkObject: "",
  itemBytes: 0,
  idOf: (requestId) => `msg_${requestId.replace(/^req_/, "")}`,
  encode: () => false,
  readAnswer: (bytes, request, serving, names) => passedAnswer(whole, bytes, request, serving, names),
  long: undefined,
  stream: (request, names): AnswerStream => new PassedStream(events, request, names),
  reportsPromptFirst: true,
  keepAlive: ping,
  errorEvent,
  kept: undefined,
  namesKept: undefined,

  asked: itemsSaid,
  answered,
  streamed,
  readReported,
};

/**
 * Anthropic counts thinking as a part of the answer. It refuses a limit that leaves no token for the rest of the
 * answer.
 */
function minLimit({ thinking }: Readonly<Record<string, unknown>>): number {
  const budget = isObject(thinking) ? thinking["budget_tokens"] : undefined;
  return typeof budget === "number" ? budget + 1 : 1;
}

function errorEvent(rendered: string): string {
  return `event: error\ndata: ${rendered}\n\n`;
}

/** Reads a Messages answer, or the chat completion from which the gateway translated it. */
function answered(answer: unknown): readonly Said[] {
  if (!isObject(answer) || !Array.isArray(answer["content"])) return choicesSaid(answer);
  return [{ ...saidIn(answer), role: "assistant", reason: answer["stop_reason"] }];
}

function streamed(event: unknown): readonly SaidPiece[] {
  if (!isObject(event)) return [];
  const { type, delta, index, content_block: block } = event;
  if (type === "content_block_start" && isObject(block) && block["type"] === "tool_use") {
    return [piece(undefined, [{ index, id: block["id"], name: block["name"], text: "" }])];
  }
  if (type === undefined) return piecesSaid(event);
  if (!isObject(delta)) return [];
  if (delta["type"] === "text_delta") return [piece(delta["text"], [])];
  if (delta["type"] === "input_json_delta") {
    return [piece(undefined, [{ index, id: undefined, name: undefined, text: delta["partial_json"] }])];
  }
  return type === "message_delta" ? [piece(undefined, [], delta["stop_reason"])] : [];
}

function piece(text: unknown, calls: SaidPiece["calls"], reason?: unknown): SaidPiece {
  return { index: 0, text, calls, reason };
}

function readReported(reported: ReportedAnswer, value: unknown): void {
  if (!isObject(value) || value["choices"] !== undefined) {
    readChunkReported(reported, value);
    return;
  }
  const answer = isObject(value["message"]) ? value["message"] : value;
  const { id, model, usage } = answer;
  if (typeof id === "string") reported.id = id;
  if (typeof model === "string") reported.model = model;
  const reason = isObject(value["delta"]) ? value["delta"]["stop_reason"] : answer["stop_reason"];
  if (typeof reason === "string") reported.finishReasons.set(0, reason);
  if (isObject(usage) && typeof usage["cache_read_input_tokens"] === "number") {
    reported.cachedTokens = usage["cache_read_input_tokens"];
  }
}
