// A model server that speaks Responses and leaves out all that a lenient client can do without, as small servers do.
import { json, type Script, type UpstreamRequest } from "./scripted-upstream.ts";

type Json = Record<string, unknown>;

export interface LeanAnswer {
  /** The pieces of the text. */
  text?: readonly string[];
  thought?: string;
  /** A call of this function with `{"city":"Oslo"}`. */
  call?: string;
}

export const leanUsage = { input_tokens: 7, output_tokens: 2 };
const callArguments = ['{"city":', '"Oslo"}'];

/** The output of a whole answer: items without ids, statuses and annotations. */
export function leanOutput({ text = [], thought, call }: LeanAnswer): Json[] {
  const output: Json[] = [];
  if (thought !== undefined) {
    output.push({ type: "reasoning", content: [{ type: "reasoning_text", text: thought }] });
  }
  if (text.length > 0) {
    output.push({ type: "message", role: "assistant", content: [{ type: "output_text", text: text.join("") }] });
  }
  if (call !== undefined) output.push({ type: "function_call", name: call, arguments: callArguments.join("") });
  return output;
}

/**
 * How a stream is told: `deltas` has pieces of text and the end alone, `items` each item as well once it is whole, and `end` the
 * last event alone.
 */
export type LeanStream = "deltas" | "items" | "end";

/** Events without numbers, and without the places and ids of their items. */
export function leanEvents(answer: LeanAnswer, stream: LeanStream = "deltas"): Json[] {
  const { text = [], thought, call } = answer;
  const output = leanOutput(answer);
  const events: Json[] = [];
  const isNotified = stream !== "end";
  if (isNotified && thought !== undefined) events.push({ type: "response.reasoning_text.delta", delta: thought });
  if (isNotified) for (const delta of text) events.push({ type: "response.output_text.delta", delta });
  const isDone = stream === "items" ? output : isNotified && call !== undefined ? output.slice(-1) : [];
  for (const item of isDone) events.push({ type: "response.output_item.done", item });
  const response = { model: "engine-model", usage: leanUsage, ...(stream === "items" ? {} : { output }) };
  return [...events, { type: "response.completed", response }];
}

/** Answers every request with the same; `answerTo` may look at the request. */
export function leanScript(
  answerTo: LeanAnswer | ((request: UpstreamRequest) => LeanAnswer),
  stream: LeanStream = "deltas",
): Script {
  return (request, res) => {
    const answer = typeof answerTo === "function" ? answerTo(request) : answerTo;
    if (request.body["stream"] !== true) {
      json(res, 200, { model: "engine-model", output: leanOutput(answer), usage: leanUsage });
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of leanEvents(answer, stream)) res.write(`data: ${JSON.stringify(event)}\n\n`);
    res.end();
  };
}
