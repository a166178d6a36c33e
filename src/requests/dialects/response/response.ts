// The Responses API, OpenAI's format for agents. In this format, a conversation is a list of items.

import type { GatewayError } from "../../../base/errors.ts";
import { generates } from "../../../domain/models/operation.ts";
import { responseRequest } from "../../../wire/responses.ts";
import type { AnswerStream, GoesOnFrom, OwnMembers } from "../answer.ts";
import { isObject, itemsSaid, listOf, saidIn } from "../conversation/said.ts";
import { hasMediaPart, shownTokens } from "../conversation/shown-tokens.ts";
import type { Dialect } from "../dialect.ts";
import { reportedCode } from "../engine-fault.ts";
import { comment } from "../keep-alive.ts";
import { choicesSaid, piecesSaid, readReported as readChunkReported } from "../openai/said.ts";
import type { ReportedAnswer, Said, SaidPiece } from "../said.ts";
import { type PassedWhole, passedAnswer } from "../translation/passed-answer.ts";
import { type BegunAnswer, type PassedEvents, PassedStream } from "../translation/passed-stream.ts";
import { responseFormat } from "./format.ts";
import { namesKept } from "./kept-items.ts";
import { openedInput } from "./opened-items.ts";
import { usageOf } from "./reply-reader.ts";
import { failureCode } from "./reply-writer.ts";
import { ResponseCollector } from "./response-collector.ts";
import { ObservedResponse } from "./stopped-response.ts";
import { isWholeUsage, leftOut, requiredMembers } from "./strict-members.ts";
import { StrictResponse, strictResponse } from "./strict-response.ts";
import { unkeptResponse } from "./unkept-response.ts";

/** Names of the members that the model reads. */
const shown = ["instructions", "input", "tools", "text"];

const events: PassedEvents = {
  format: responseFormat,
  answerMember: "response",
  last: new Set(["response.completed", "response.incomplete", "response.failed"]),
  forgotten: "",
  errorEvent,
  repair: (head) => new StrictResponse(head),
  observer: () => new ObservedResponse(),
};

const search = Buffer.from('"web_search_call"');
const call = Buffer.from('"function_call"');

const whole: PassedWhole = {
  format: responseFormat,
  list: "output",
  strict: strictResponse,
  isUsual: (found) =>
    found.isText("object", "response") &&
    found.isText("status", "completed") &&
    found.isNothing("error") &&
    // An error has a member `type`, but a response has none.
    found.isNothing("type") &&
    found.hasWholeParts &&
    !found.holds("output", call),
  missing: { names: leftOut, values: (head) => requiredMembers(head, "completed") },
  // Vendors charge for searches. These are counted from the output items, so the items must be parsed.
  usage: (found) => {
    if (found.holds("output", search)) return undefined;
    const usage = found.parsedValueOf("usage");
    return isWholeUsage(usage) ? usageOf(usage, { service_tier: found.parsedValueOf("service_tier") }) : undefined;
  },
};

export const response: Dialect = {
  operation: "response",
  endpoint: "Responses",
  capability: "chat",
  spanName: "chat",

  maker: "openai",
  format: responseFormat,
  task: undefined,
  schema: responseRequest,
  countSchema: undefined,
  rewritten: undefined,
  shownMembers: shown,
  promptTokens: (body) => shownTokens(body, shown),
  isPlain,
  opened: openedInput,
  isStoredByDefault: true,
  asksForUsage: false,
  limitMembers: ["max_output_tokens"],
  minLimit: () => 16,
  isLimitRequired: false,
  promptMember: "input",
  isConversation: true,
  generates: generates.response,
  knowsNewerLimit: true,
  width: () => 1,
  hasMedia: hasMediaPart,

  answerList: "output",
  answerObject: "response",
  chunkObject: "",
  itemBytes: 0,
  idOf: (requestId) => `resp_${requestId.replace(/^req_/, "")}`,
  encode: () => false,
  readAnswer: (bytes, request, serving, names) => passedAnswer(whole, bytes, request, serving, names),
  long: undefined,
  stream: (request, names): AnswerStream => new PassedStream(events, request, names),
  reportsPromptFirst: false,
  keepAlive: comment,
  // The error event depends on earlier events, because a failed response repeats its output so far.
  errorEvent: undefined,
  kept: {
    as: "response",
    ofAllEvents: false,
    collector: () => new ResponseCollector(),
    members: ownMembers,
    unkept: unkeptResponse,
  },
  namesKept,

  asked: itemsSaid,
  answered,
  streamed,
  readReported,
};

/**
 * Writes an error into a stream that is forwarded from a server of the Responses API. Codex expects a failed response,
 * and treats a stream without one as a broken connection. If no response has begun, a plain error event is written.
 */
function errorEvent(rendered: string, fault: GatewayError, { answer, events: number }: BegunAnswer): string {
  const { error } = JSON.parse(rendered) as { error: { code: string; message: string; param?: string } };
  const { message, param } = error;
  const event = answer
    ? {
        type: "response.failed",
        sequence_number: number,
        response: { ...answer, status: "failed", error: { code: failureCode(reportedCode(fault)), message } },
      }
    : // OpenAI's clients read the members of the event itself. Clients of Open Responses read its member `error`.
      { type: "error", sequence_number: number, code: error.code, message, param: param ?? null, error };
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function ownMembers(isKept: boolean, from: GoesOnFrom | undefined): OwnMembers {
  const { previousId = null, conversationId = null } = from ?? {};
  return {
    store: isKept,
    previous_response_id: previousId,
    conversation: conversationId === null ? null : { id: conversationId },
  };
}

/**
 * Reports whether all servers understand the request. Servers that convert it to chat completions know only functions
 * and messages.
 */
function isPlain({ tools, tool_choice: choice, input, text }: Readonly<Record<string, unknown>>): boolean {
  const plainTools = listOf(tools).every((tool) => isObject(tool) && tool["type"] === "function");
  const plainChoice = !isObject(choice) || choice["type"] === "function";
  // The model server llama-server ignores an output format, without an error.
  const form = isObject(text) && isObject(text["format"]) ? text["format"]["type"] : "text";
  return (
    plainTools && plainChoice && form === "text" && listOf(input).every((item) => isObject(item) && isPlainItem(item))
  );
}

const plainItems: ReadonlySet<unknown> = new Set([undefined, "message", "function_call", "function_call_output"]);

function isPlainItem({ type, role, content, output }: Readonly<Record<string, unknown>>): boolean {
  const parts = [...listOf(content), ...listOf(output)];
  const hasFile = parts.some((part) => isObject(part) && part["type"] === "input_file");
  return plainItems.has(type) && (type !== undefined || role !== undefined) && !hasFile;
}

/** Reads a Responses answer, or the chat completion from which the gateway translated it. */
function answered(answer: unknown): readonly Said[] {
  if (!isObject(answer) || !Array.isArray(answer["output"])) return choicesSaid(answer);
  return answer["output"].filter(isObject).map((item) => ({ ...saidIn(item), role: "assistant" }));
}

function streamed(event: unknown): readonly SaidPiece[] {
  if (!isObject(event)) return [];
  const { type, delta, item, output_index: index } = event;
  if (type === "response.output_text.delta") return [{ index: 0, text: delta, calls: [], reason: undefined }];
  const isCall = type === "response.function_call_arguments.delta" || type === "response.custom_tool_call_input.delta";
  if (isCall) return [piece([{ index, id: undefined, name: undefined, text: delta }])];
  if (type === "response.output_item.added" && isObject(item) && item["call_id"] !== undefined) {
    return [piece([{ index, id: item["call_id"], name: item["name"], text: "" }])];
  }
  return type === undefined ? piecesSaid(event) : [];
}

function piece(calls: SaidPiece["calls"]): SaidPiece {
  return { index: 0, text: undefined, calls, reason: undefined };
}

function readReported(reported: ReportedAnswer, value: unknown): void {
  const answer = isObject(value) && isObject(value["response"]) ? value["response"] : value;
  if (!isObject(answer) || answer["object"] !== "response") {
    readChunkReported(reported, value);
    return;
  }
  const { id, model, status, usage } = answer;
  if (typeof id === "string") reported.id = id;
  if (typeof model === "string") reported.model = model;
  if (typeof status === "string" && status !== "in_progress") reported.finishReasons.set(0, status);
  if (!isObject(usage)) return;
  const { input_tokens_details: input, output_tokens_details: output } = usage;
  if (isObject(input) && typeof input["cached_tokens"] === "number") reported.cachedTokens = input["cached_tokens"];
  if (isObject(output) && typeof output["reasoning_tokens"] === "number")
    reported.reasoningTokens = output["reasoning_tokens"];
}
