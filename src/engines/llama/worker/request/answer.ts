// Runs the generations of a request, and answers with one JSON object or with Server-Sent Events.
import { runChoices } from "../choices.ts";
import type { Generation, Outcome } from "../generate.ts";
import type { ReplyEvent } from "../reply/reply-reader.ts";
import type { Runtime } from "../runtime.ts";
import { EventStream } from "./event-stream.ts";
import { asRequestError, errorBody, RequestError } from "./request-error.ts";

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** Describes how an endpoint formats its answer. Every chunk is JSON text. */
export interface AnswerFormat {
  chunks: {
    /** Returns the first chunk of a choice, or undefined for none. */
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
  /** True if a stream ends with a chunk of the token usage. */
  includeUsage: boolean;
  /** The sum of all prompts' tokens. A prompt with several choices counts once. */
  promptTokens: number;
  /** The request field that was ignored, if any. */
  ignored?: "tools" | undefined;
}

export async function answer(runtime: Runtime, request: Answer, signal: AbortSignal): Promise<Response> {
  if (request.stream) return streamed(runtime, request, signal);
  const choices = request.generations.map(
    (): FinishedChoice => ({
      events: [],
      outcome: { finishReason: "stop", completionTokens: 0 },
    }),
  );
  await runChoices(runtime, request.generations, signal, {
    report: (choice, events) => {
      choices[choice]?.events.push(...events);
      return undefined;
    },
    ended: (choice, outcome) => {
      const finished = choices[choice];
      if (finished !== undefined) finished.outcome = outcome;
    },
  });
  const completionTokens = choices.reduce((sum, { outcome }) => sum + outcome.completionTokens, 0);
  const body = request.format.whole(choices, usageOf(request.promptTokens, completionTokens));
  return new Response(body, { headers: { "content-type": "application/json", ...ignoring(request) } });
}

function ignoring({ ignored }: Answer): Record<string, string> {
  return ignored === undefined ? {} : { "x-headrace-ignored": ignored };
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
  const stream = new EventStream(runtime.frames, () => stop.abort());
  signal.addEventListener("abort", () => stream.leave(), { once: true });
  void writeStream(runtime, request, AbortSignal.any([signal, stop.signal]), stream);
  return new Response(stream.body, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      ...ignoring(request),
    },
  });
}

async function writeStream(runtime: Runtime, request: Answer, signal: AbortSignal, stream: EventStream): Promise<void> {
  const { chunks } = request.format;
  try {
    let completionTokens = 0;
    stream.open(request.generations.map(({ choice }) => frame(chunks.first(choice))).join(""));
    await runChoices(runtime, request.generations, signal, {
      report: (choice, events) => stream.push(() => events.map((event) => frame(chunks.event(choice, event))).join("")),
      ended: (choice, outcome) => {
        completionTokens += outcome.completionTokens;
        stream.push(() => frame(chunks.last(choice, outcome)));
      },
    });
    const usage = request.includeUsage ? frame(chunks.usage(usageOf(request.promptTokens, completionTokens))) : "";
    stream.push(() => `${usage}data: [DONE]\n\n`);
  } catch (error) {
    if (!signal.aborted) {
      if (!(error instanceof RequestError)) runtime.report("streaming an answer", error);
      // No `[DONE]` follows an error. SDKs throw on the error event, so no client takes the answer for complete.
      stream.push(() => frame(errorBody(asRequestError(error))));
    }
  }
  stream.end();
}

function frame(json: string | undefined): string {
  return json === undefined ? "" : `data: ${json}\n\n`;
}
