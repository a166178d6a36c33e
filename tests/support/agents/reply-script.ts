// A model server that speaks the format it is asked in, and says the same in each: whole, as a stream, or until it fails.

import { isConversation, type Operation, operationPaths } from "../../../src/domain/models/operation.ts";
import type { ReplyFault, ReplySink } from "../../../src/requests/dialects/conversation/reply.ts";
import { dialects } from "../../../src/requests/dialects/dialects.ts";
import { noSeal } from "../no-seal.ts";
import { json, type Script, usage } from "../scripted-upstream.ts";

export type ReplyStep = (sink: ReplySink) => void;

/** What an engine counts of each answer. */
export const reportedUsage = {
  promptTokens: usage.prompt_tokens,
  completionTokens: usage.completion_tokens,
  cachedTokens: 3,
  reasoningTokens: 1,
};

/** `fault`: it says so in the stream, and ends; without a stream it answers 500. */
export function replyScript(steps: readonly ReplyStep[], fault?: ReplyFault): Script {
  return ({ path, body }, res) => {
    const operation = operationAt(path);
    if (!operation) {
      // It counts no prompts.
      json(res, 404, { error: { message: "There is no such path.", type: "not_found_error" } });
      return;
    }
    const { format } = dialects[operation];
    if (!format) throw new Error(`nobody has conversations at ${path}`);
    const head = {
      id: `${operation}_9`,
      model: "engine-model",
      created: 1_700_000_000,
      promptTokens: 7,
      request: body,
    };
    const writer = format.writer({ ...head, seal: noSeal, nowSeconds: () => 1_700_000_003 });
    const isStream = body["stream"] === true;
    if (!isStream && fault) {
      json(res, 500, { error: { message: fault.message, type: "api_error", code: fault.code } });
      return;
    }
    if (!isStream) {
      for (const tell of steps) tell(writer);
      json(res, 200, writer.whole(reportedUsage));
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const tell of steps) {
      tell(writer);
      res.write(writer.take());
    }
    res.end(fault ? writer.failure(fault) : writer.ending(reportedUsage));
  };
}

function operationAt(path: string): Operation | undefined {
  const found = Object.entries(operationPaths).find(([, end]) => path.split("?")[0] === `/v1${end}`);
  const operation = found?.[0] as Operation | undefined;
  return operation && isConversation(operation) ? operation : undefined;
}

export const say = {
  text:
    (text: string, logprobs?: readonly unknown[]): ReplyStep =>
    (sink) =>
      sink.text(text, logprobs),
  refusal:
    (text: string): ReplyStep =>
    (sink) =>
      sink.refusal(text),
  thought:
    (text: string, isSummary = false): ReplyStep =>
    (sink) =>
      sink.reasoning(text, isSummary),
  call:
    (index: number, name: string): ReplyStep =>
    (sink) =>
      sink.call(index, { callId: `call_${index}`, kind: "function", name }),
  arguments:
    (index: number, piece: string): ReplyStep =>
    (sink) =>
      sink.arguments(index, piece),
  end:
    (reason: Parameters<ReplySink["end"]>[0]["reason"]): ReplyStep =>
    (sink) =>
      sink.end({ reason }),
};
