// Requests a model's answer: sends the request, retries it, and reads the stream.
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { failure, parseJson, send, understood, unreachable } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { CliError, printable } from "../terminal/terminal.ts";
import { readEvents } from "./event-stream.ts";

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface ChatSettings {
  model: string;
  temperature?: number | undefined;
  maxTokens?: number | undefined;
  store?: boolean | undefined;
  stream: boolean;
}

export interface Answer {
  text: string;
  finishReason: string | undefined;
  /** The server's token counts. */
  usage: Usage | undefined;
  /** The time from the request to the first text. Undefined for an answer in one piece. */
  firstTokenMs: number | undefined;
  totalMs: number;
}

export interface AnswerObserver {
  text(piece: string): void;
  /** Receives a piece of the model's reasoning, if the server sends it. */
  thought(piece: string): void;
  retrying(reason: string, waitMs: number): void;
}

const maxRetries = 2;
const firstRetryMs = 500;
/**
 * Maximum wait before an automatic retry. If the server asks for a longer wait, the command fails and the person
 * decides.
 */
const maxWaitMs = 60_000;

const usageShape = z.object({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  estimated: z.boolean().optional(),
});
export type Usage = z.infer<typeof usageShape>;

const piece = z.string().nullish();
const chunk = z.object({
  choices: z
    .array(
      z.object({
        delta: z.object({ content: piece, refusal: piece, reasoning_content: piece, reasoning: piece }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .optional(),
  usage: usageShape.nullish(),
  error: z.object({ message: z.string() }).optional(),
});

const completion = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({ content: piece, refusal: piece }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
  usage: usageShape.nullish(),
});

/**
 * Requests the answer to the conversation. Pieces go to the observer as they arrive. Rejects with the reason of
 * `signal`, or with a CliError, also if the stream reports an error or breaks off.
 */
export async function requestAnswer(
  connection: Connection,
  settings: ChatSettings,
  messages: readonly ChatMessage[],
  observer: AnswerObserver,
  signal: AbortSignal,
): Promise<Answer> {
  const startedMs = performance.now();
  const response = await open(connection, requestBody(settings, messages), observer, signal);
  if (!settings.stream || response.body === null) {
    const { choices, usage } = understood(completion, await json(response, connection, signal), connection, "answer");
    const text = choices[0]?.message.content ?? choices[0]?.message.refusal ?? "";
    observer.text(text);
    const finishReason = choices[0]?.finish_reason ?? undefined;
    const totalMs = performance.now() - startedMs;
    return { text, finishReason, usage: usage ?? undefined, firstTokenMs: undefined, totalMs };
  }
  const answer: Answer = { text: "", finishReason: undefined, usage: undefined, firstTokenMs: undefined, totalMs: 0 };
  try {
    await readStream(readEvents(response.body, signal), answer, observer, () => performance.now() - startedMs);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CliError) throw error;
    throw new CliError(`The answer broke off: ${error instanceof Error ? error.message : String(error)}`);
  }
  answer.totalMs = performance.now() - startedMs;
  return answer;
}

/** Returns the completion as the API sends it, in one piece. */
export async function requestCompletion(
  connection: Connection,
  settings: ChatSettings,
  messages: readonly ChatMessage[],
  observer: Pick<AnswerObserver, "retrying">,
  signal: AbortSignal,
): Promise<unknown> {
  const response = await open(connection, requestBody({ ...settings, stream: false }, messages), observer, signal);
  return json(response, connection, signal);
}

function requestBody(settings: ChatSettings, messages: readonly ChatMessage[]): Record<string, unknown> {
  const { model, temperature, maxTokens, store, stream } = settings;
  return {
    model,
    messages,
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(store ? { store: true } : {}),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

async function readStream(
  events: AsyncIterable<string>,
  answer: Answer,
  observer: AnswerObserver,
  elapsedMs: () => number,
): Promise<void> {
  for await (const data of events) {
    if (data === "[DONE]") return;
    const parsed = chunk.safeParse(parseJson(data));
    if (!parsed.success) throw new CliError("The answer broke off: the stream has an event that is no chunk.");
    const { choices = [], usage, error } = parsed.data;
    if (error) throw new CliError(`The answer failed: ${printable(error.message)}`);
    if (usage) answer.usage = usage;
    for (const { delta, finish_reason } of choices) {
      const thought = delta?.reasoning_content ?? delta?.reasoning;
      const text = delta?.content ?? delta?.refusal;
      if (thought || text) answer.firstTokenMs ??= elapsedMs();
      if (thought) observer.thought(thought);
      if (text) {
        answer.text += text;
        observer.text(text);
      }
      answer.finishReason = finish_reason ?? answer.finishReason;
    }
  }
  throw new CliError("The answer broke off: the connection was closed before its end.");
}

/** Returns a successful response. Retries 429 and 503, as SDKs do, unless the server advises against a retry. */
async function open(
  connection: Connection,
  body: Record<string, unknown>,
  observer: Pick<AnswerObserver, "retrying">,
  signal: AbortSignal,
): Promise<Response> {
  for (let retries = 0; ; retries++) {
    const request = { method: "POST", body, accept: "application/json, text/event-stream", timeoutMs: null } as const;
    const response = await send(connection, "/chat/completions", signal, request);
    if (response.ok) return response;
    const waitMs = retries < maxRetries ? retryDelayMs(response, retries) : undefined;
    const refused = await failure(response, connection, signal);
    if (waitMs === undefined) throw refused;
    observer.retrying(refused.message, waitMs);
    await setTimeout(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** Returns the wait before the next retry; undefined if a retry is useless or the wait is too long. */
function retryDelayMs({ status, headers }: Response, retries: number): number | undefined {
  if ((status !== 429 && status !== 503) || headers.get("x-should-retry") === "false") return undefined;
  const milliseconds = Number(headers.get("retry-after-ms") ?? Number.NaN);
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  const askedMs = [milliseconds, seconds * 1000].find((value) => value >= 0);
  const waitMs = askedMs ?? firstRetryMs * 2 ** retries;
  return waitMs <= maxWaitMs ? waitMs : undefined;
}

async function json(response: Response, connection: Connection, signal: AbortSignal): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof SyntaxError
      ? new CliError(`${connection.baseUrl} answered with something that is no JSON.`)
      : unreachable(error, connection.baseUrl);
  }
}
