// The requests and answers of the benchmark: the chat request, and the fixed answers of the mock upstream.

/** The mock upstream's only model. */
export const upstreamModel = "bench-model";
/** The public id under which the gateway offers the same model, so that `model` must be rewritten both ways. */
export const renamedModel = "bench-renamed";

/** A model of an upstream that speaks Responses and Messages as well. */
export const nativeModel = "bench-native";

/** The plan of the mock's stream; sent in the request as a member that nobody but the mock knows. */
export interface StreamPlan {
  /** Chunks with text; the role, the finish and `[DONE]` come on top. */
  chunks: number;
  /** Time between two chunks of one stream; 0: as fast as the reader takes them. */
  paceMs: number;
  /** Whether the stream is silent after its first event until its client leaves. */
  hold?: boolean;
}

/** Events that a client sees of a stream of `chunks`, when it did not ask for usage. */
export function eventsOf({ chunks }: StreamPlan): number {
  return chunks + 3;
}

const created = 1_700_000_000;
/** Bytes of a request without its text, roughly. */
const frameBytes = 210;
const sentence = "The gateway passes what need not change, and counts what it passed. ";

/** Tokens that the mock reports for each answer; the ledger must come to the same. */
export const promptTokens = 180;
export const completionTokens = 160;
const answerUsage = usageOf(promptTokens);

function usageOf(tokens: number) {
  return { prompt_tokens: tokens, completion_tokens: completionTokens, total_tokens: tokens + completionTokens };
}

/** A chat request, of about 1 KB unless `bodyBytes` says otherwise. */
export function chatRequest(model: string, plan?: StreamPlan, bodyBytes = 1_000): string {
  const text = sentence.repeat(Math.ceil(bodyBytes / sentence.length)).slice(0, bodyBytes - frameBytes);
  return JSON.stringify({
    model,
    messages: [
      { role: "system", content: "You are a helpful assistant. Answer briefly, in plain words." },
      { role: "user", content: text },
    ],
    temperature: 0.7,
    max_tokens: 256,
    ...(plan ? { stream: true, bench: plan } : {}),
  });
}

/** The same as a request for a response that is not kept. */
export function responsesRequest(model: string, plan?: StreamPlan, bodyBytes = 1_000): string {
  const text = sentence.repeat(Math.ceil(bodyBytes / sentence.length)).slice(0, bodyBytes - frameBytes);
  return JSON.stringify({
    model,
    instructions: `You are a helpful assistant. Answer briefly, in plain words.${planText(plan)}`,
    input: [{ type: "message", role: "user", content: text }],
    temperature: 0.7,
    max_output_tokens: 256,
    store: false,
    ...(plan ? { stream: true } : {}),
  });
}

/** The same as a request for a message. */
export function messagesRequest(model: string, plan?: StreamPlan, bodyBytes = 1_000): string {
  const text = sentence.repeat(Math.ceil(bodyBytes / sentence.length)).slice(0, bodyBytes - frameBytes);
  return JSON.stringify({
    model,
    system: `You are a helpful assistant. Answer briefly, in plain words.${planText(plan)}`,
    messages: [{ role: "user", content: text }],
    temperature: 0.7,
    max_tokens: 256,
    ...(plan ? { stream: true } : {}),
  });
}

/** A member that nobody knows is lost where a request is translated: the plan is said to the model. */
function planText(plan: StreamPlan | undefined): string {
  return plan ? ` [bench ${plan.chunks} ${plan.paceMs}]` : "";
}

/** The plan of a request to the mock. */
export function planOf(body: string): StreamPlan {
  const said = /\[bench (\d+) (\d+)\]/.exec(body);
  if (said) return { chunks: Number(said[1]), paceMs: Number(said[2]) };
  return (JSON.parse(body) as { bench: StreamPlan }).bench;
}

/** The same answer as a response. */
export const responsesAnswer = JSON.stringify({
  ...{ id: "resp_bench", object: "response", created_at: created, status: "completed", model: upstreamModel },
  ...{ error: null, incomplete_details: null, instructions: null, metadata: {}, parallel_tool_calls: true },
  output: [
    {
      ...{ id: "msg_bench", type: "message", role: "assistant", status: "completed" },
      content: [{ type: "output_text", text: sentence.repeat(12), annotations: [], logprobs: [] }],
    },
  ],
  usage: {
    ...{ input_tokens: promptTokens, output_tokens: completionTokens, total_tokens: promptTokens + completionTokens },
    ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
  },
});

/** The same answer as a message. */
export const messagesAnswer = JSON.stringify({
  ...{ id: "msg_bench", type: "message", role: "assistant", model: upstreamModel },
  content: [{ type: "text", text: sentence.repeat(12) }],
  ...{ stop_reason: "end_turn", stop_sequence: null },
  usage: { input_tokens: promptTokens, output_tokens: completionTokens },
});

/** A chat answer of about 1 KB, to a prompt of so many tokens. */
export function chatAnswerOf(tokens: number): string {
  return JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created,
    model: upstreamModel,
    choices: [
      { index: 0, message: { role: "assistant", content: sentence.repeat(12) }, finish_reason: "stop", logprobs: null },
    ],
    usage: usageOf(tokens),
  });
}

export const chatAnswer = chatAnswerOf(promptTokens);

export const modelList = JSON.stringify({
  object: "list",
  data: [{ id: upstreamModel, object: "model", created, owned_by: "bench" }],
});

/** One event of a stream. */
export function event(
  delta: Record<string, string>,
  finishReason: string | null = null,
  more: Record<string, unknown> = {},
): string {
  return `data: ${JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created,
    model: upstreamModel,
    choices: [{ index: 0, delta, finish_reason: finishReason }],
    ...more,
  })}\n\n`;
}

export const roleEvent = event({ role: "assistant", content: "" });
export const textEvent = event({ content: " word" });
export const finishEvent = event({}, "stop");
export const usageEvent = event({}, null, {
  choices: [],
  usage: answerUsage,
});
export const doneEvent = "data: [DONE]\n\n";
