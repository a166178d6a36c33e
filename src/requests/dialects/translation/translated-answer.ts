// A whole answer in the client's API format, from a model server that uses another format.
import { type ByteSpan, withoutMark } from "../../../base/bytes/byte-span.ts";
import { byteTextOf, decodeByteText } from "../../../base/bytes/byte-text.ts";
import { SseReader } from "../../../base/text/sse.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { Answer, AnswerNames, AskedRequest, Serving } from "../answer.ts";
import type { ConversationFormat } from "../conversation/format.ts";
import type { ReplyReader } from "../conversation/reply.ts";
import { isEndMark } from "../end-mark.ts";
import { reportedFault } from "../engine-fault.ts";
import { isHeartbeat } from "../keep-alive.ts";
import { comparedUsage } from "../least-usage.ts";
import { malformed } from "../malformed.ts";
import { estimateTokens } from "../prompt-tokens.ts";
import { CountedReply, usageOf } from "./counted-reply.ts";
import { parsedAnswer } from "./engine-answer.ts";
import { headOf, type Translation } from "./translation.ts";

const openBrace = 0x7b;

/** Returns the answer in the client's format. Throws `upstream_error` if the answer is unusable. */
export function translatedAnswer(
  all: ByteSpan,
  request: AskedRequest,
  serving: Serving,
  names: AnswerNames,
  translation: Translation,
): Answer {
  const { from, to, names: calls } = translation;
  // Some servers put a byte-order mark before the answer.
  const bytes = withoutMark(all);
  serving.trace?.answer(bytes);
  const writer = to.writer(headOf(request, names, serving, translation));
  const reply = new CountedReply(writer);
  const reader = from.reader(calls, serving.deployment.engine);
  if (isStream(bytes)) readStream(bytes, reader, reply, serving);
  else reader.whole(parsedAnswer(bytes.text, serving), reply);
  const usage = wholeUsage(reply, request, serving);
  const body = JSON.stringify(writer.whole(usageOf(usage, reply.reportedUsage)));
  return { body, text: body, usage };
}

/**
 * Joins the events of a server that streams although the request asked for a whole answer. The client uses the same
 * format as the server.
 */
export function streamedAnswer(
  bytes: ByteSpan,
  request: AskedRequest,
  serving: Serving,
  names: AnswerNames,
  format: ConversationFormat,
): Answer {
  const seal = { seal: () => "", open: () => undefined };
  return translatedAnswer(bytes, request, serving, names, { from: format, to: format, names: new Map(), seal });
}

/** Reports whether the bytes are events of a stream and not the JSON of an answer. */
export function isStream({ buffer, start, end }: ByteSpan): boolean {
  if (buffer[start] === openBrace) return false;
  return /^(?:data|event|id|retry)?:/.test(buffer.toString("latin1", start, Math.min(end, start + 8)));
}

function readStream(bytes: ByteSpan, reader: ReplyReader, reply: CountedReply, serving: Serving): void {
  const events = new SseReader();
  events.feed(byteTextOf(bytes));
  let hasPart = false;
  for (;;) {
    const data = events.next() ?? events.end();
    const isEnd = data !== undefined && isEndMark(data);
    if (data === undefined || isEnd || reader.isOver) {
      if (!hasPart) throw malformed("a stream without a part of an answer");
      if (isEnd) reader.done?.(reply);
      return;
    }
    const text = decodeByteText(data);
    if (events.name === "error") throw reportedFault(text, serving.deployment.engine, "The model server failed.");
    if (isHeartbeat(events.name, data)) continue;
    const event = parsedAnswer(text, serving);
    hasPart ||= reader.isPart(event);
    reader.event(event, reply);
  }
}

/**
 * Returns the reported usage, but with an estimate in place of each impossible figure. If no usage was reported,
 * returns an estimate. Throws `upstream_error` if the answer did not end.
 */
export function wholeUsage(reply: CountedReply, request: AskedRequest, serving: Serving): TokenUsage {
  if (!reply.ended) throw malformed("an answer that does not say why it ended");
  const bytes = reply.deliveredBytes;
  return comparedUsage(reply.reported, request, { bytes, tokens: estimateTokens(bytes) }, serving.model.context);
}
