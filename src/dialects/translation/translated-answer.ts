// A whole answer in the client's format, of an engine that speaks another.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { Answer, AnswerNames, AskedRequest, Serving } from "../answer.ts";
import { atLeastDelivered } from "../least-usage.ts";
import { malformed } from "../malformed.ts";
import { estimateTokens } from "../prompt-tokens.ts";
import { CountedReply, usageOf } from "./counted-reply.ts";
import { parsedAnswer } from "./engine-answer.ts";
import { headOf, type Translation } from "./translation.ts";

/** Throws `upstream_error` on what is no usable answer. */
export function translatedAnswer(
  bytes: ByteSpan,
  request: AskedRequest,
  serving: Serving,
  names: AnswerNames,
  translation: Translation,
): Answer {
  const { from, to, names: calls } = translation;
  serving.trace?.answer(bytes);
  const writer = to.writer(headOf(request, names, serving, translation));
  const reply = new CountedReply(writer);
  from.reader(calls, serving.deployment.engine).whole(parsedAnswer(bytes.text, serving), reply);
  const usage = wholeUsage(reply, request, serving);
  const body = JSON.stringify(writer.whole(usageOf(usage, reply.told)));
  return { body, text: body, usage };
}

/** What was reported, as far as it can be; else an estimate. Throws `upstream_error` where the answer did not end. */
export function wholeUsage(reply: CountedReply, request: AskedRequest, serving: Serving): TokenUsage {
  if (!reply.ended) throw malformed("an answer that does not say why it ended");
  const bytes = reply.deliveredBytes;
  const tokens = estimateTokens(bytes);
  const { reported } = reply;
  if (reported) return atLeastDelivered(reported, request, { bytes, tokens }, serving.model.context);
  return { promptTokens: request.promptTokens, completionTokens: tokens, estimated: true };
}
