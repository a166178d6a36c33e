// The requests and answers of the benchmark: the chat request, and the fixed answers of the mock upstream.

/** The mock upstream's only model. */
export const upstreamModel = "bench-model";
/** The public id under which the gateway offers the same model, so that `model` must be rewritten both ways. */
export const renamedModel = "bench-renamed";

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
const answerUsage = {
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
};

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

/** A chat answer of about 1 KB. */
export const chatAnswer = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created,
  model: upstreamModel,
  choices: [
    { index: 0, message: { role: "assistant", content: sentence.repeat(12) }, finish_reason: "stop", logprobs: null },
  ],
  usage: answerUsage,
});

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
