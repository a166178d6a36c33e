// Answers a request with its generations: as one JSON object, or as a stream of Server-Sent Events.
import { runChoices } from "./choices.ts";
import type { Generation, Outcome } from "./generate.ts";
import type { ReplyEvent } from "./reply-reader.ts";
import { asRequestError, errorBody, RequestError } from "./request-error.ts";
import type { Runtime } from "./runtime.ts";

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** How an endpoint writes its answer. Every chunk is JSON text. */
export interface AnswerFormat {
  chunks: {
    /** Before anything of the choice; undefined: nothing. */
    first: (choice: number) => string | undefined;
    event: (choice: number, event: ReplyEvent) => string;
    last: (choice: number, outcome: Outcome) => string;
    usage: (usage: Usage) => string;
  };
  whole: (choices: readonly FinishedChoice[], usage: Usage) => string;
}

export interface FinishedChoice {
  events: ReplyEvent[];
  outcome: Outcome;
}

export interface Answer {
  generations: readonly Generation[];
  format: AnswerFormat;
  stream: boolean;
  /** Whether a stream ends with the usage. */
  includeUsage: boolean;
  /** Of all prompts; a prompt with several choices counts once. */
  promptTokens: number;
}

export async function answer(runtime: Runtime, request: Answer, signal: AbortSignal): Promise<Response> {
  if (request.stream) return streamed(runtime, request, signal);
  const choices = request.generations.map(
    (): FinishedChoice => ({
      events: [],
      outcome: { finishReason: "stop", completionTokens: 0 },
    }),
  );
  for await (const { choice, events, outcome } of runChoices(runtime, request.generations, signal)) {
    const finished = choices[choice];
    if (finished === undefined) continue;
    finished.events.push(...events);
    if (outcome !== undefined) finished.outcome = outcome;
  }
  const completionTokens = choices.reduce((sum, { outcome }) => sum + outcome.completionTokens, 0);
  const body = request.format.whole(choices, usageOf(request.promptTokens, completionTokens));
  return new Response(body, { headers: { "content-type": "application/json" } });
}

export function usageOf(promptTokens: number, completionTokens: number): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

function streamed(runtime: Runtime, request: Answer, signal: AbortSignal): Response {
  const stop = new AbortController();
  const frames = writeFrames(runtime, request, AbortSignal.any([signal, stop.signal]));
  // A client may leave while the stream waits for it to read: then nothing but this ends the generation.
  const leave = () => {
    stop.abort();
    void frames.return();
  };
  signal.addEventListener("abort", leave, { once: true });
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      // Pulled, never pushed: the generation goes on only as fast as the client reads.
      async pull(controller) {
        const { value, done } = await frames.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}

async function* writeFrames(runtime: Runtime, request: Answer, signal: AbortSignal): AsyncGenerator<string, void> {
  const { chunks } = request.format;
  try {
    let completionTokens = 0;
    const opening = request.generations.map(({ choice }) => frame(chunks.first(choice))).join("");
    if (opening !== "") yield opening;
    for await (const { choice, events, outcome } of runChoices(runtime, request.generations, signal)) {
      let text = "";
      for (const event of events) text += frame(chunks.event(choice, event));
      if (outcome !== undefined) {
        completionTokens += outcome.completionTokens;
        text += frame(chunks.last(choice, outcome));
      }
      if (text !== "") yield text;
    }
    const usage = request.includeUsage ? frame(chunks.usage(usageOf(request.promptTokens, completionTokens))) : "";
    yield `${usage}data: [DONE]\n\n`;
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof RequestError)) runtime.report("streaming an answer", error);
    // No [DONE] after an error: the SDKs raise on the event, and nobody can take the answer for complete.
    yield frame(errorBody(asRequestError(error)));
  }
}

function frame(json: string | undefined): string {
  return json === undefined ? "" : `data: ${json}\n\n`;
}
