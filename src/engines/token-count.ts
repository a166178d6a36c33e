// Asks a model server how many tokens a prompt has, without running the prompt.
import { BodyTooLongError, readAll } from "../base/bytes/body-source.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { exactMs } from "../base/clock.ts";
import { editObject, scanObject } from "../base/text/json-text.ts";
import type { CountRequest } from "../domain/models/engine.ts";
import type { ConversationOperation } from "../domain/models/operation.ts";
import { type HttpTarget, headersOf, ownHeadersOf, withQuery } from "./http-engine.ts";

/** The paths for counting tokens at llama-server, OpenAI and Anthropic. For chats, vLLM's `/tokenize` is tried too. */
const paths: Readonly<Record<ConversationOperation, string>> = {
  chat: "/chat/completions/input_tokens",
  response: "/responses/input_tokens",
  message: "/messages/count_tokens",
};
/**
 * The members to keep when the tokens of a Responses request are counted. OpenAI's and Anthropic's servers refuse
 * others (the SDKs' types, and Wei-Shaw/sub2api#4913). For Messages, `uncountedOfMessage` lists the members to remove.
 */
const countedOfResponse: ReadonlySet<string> = new Set([
  ...["model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"],
  ...["truncation", "conversation", "previous_response_id"],
]);
const uncountedOfMessage: ReadonlySet<string> = new Set([
  ...["max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences", "metadata", "service_tier"],
]);
/** The statuses of a server that does not have the path, or not for this credential. */
const never: ReadonlySet<number> = new Set([401, 403, 404, 405, 410, 501]);
const maxAnswerBytes = 64 * 1024;
/** The time after which a missing path is tried again, because the server may have been updated. */
const askAgainMs = 5 * 60_000;

/** Counts tokens at one server, and remembers which paths the server does not have. */
export class TokenCounter {
  readonly #target: HttpTarget;
  /** Missing paths, with the monotonic milliseconds until which they are not requested. */
  readonly #missing = new Map<string, number>();

  constructor(target: HttpTarget) {
    this.#target = target;
  }

  /**
   * Returns the number of tokens. Undefined if the server cannot count or refuses. Rejects if the server cannot be
   * reached.
   */
  async count(request: CountRequest, cancellation: Cancellation): Promise<number | undefined> {
    const { basePath, rootPath } = this.#target;
    const counted = await this.#ask(basePath + paths[request.operation], request, cancellation);
    if (counted !== undefined || request.operation !== "chat") return counted;
    return this.#ask(`${rootPath}/tokenize`, request, cancellation);
  }

  async #ask(path: string, request: CountRequest, cancellation: Cancellation): Promise<number | undefined> {
    if ((this.#missing.get(path) ?? 0) > exactMs()) return undefined;
    const { client } = this.#target;
    const { requestId, memoryAccount } = request;
    const body = countedBody(request);
    const ownHeaders = ownHeadersOf(request);
    const whole = { path: withQuery(path, this.#target), headers: headersOf(this.#target, request).json };
    const sent = {
      method: "POST",
      ...whole,
      ...(ownHeaders && { ownHeaders }),
      requestId,
      body,
      memoryAccount,
    } as const;
    const response = await client.send(sent, this.#target, cancellation);
    if (response.status !== 200) {
      response.body.cancel();
      if (never.has(response.status)) this.#missing.set(path, exactMs() + askAgainMs);
      return undefined;
    }
    return countIn(await textOf(response.body, cancellation));
  }
}

/** Returns the body without the members that a count request must not have. */
function countedBody({ operation, body }: CountRequest): CountRequest["body"] {
  if (operation === "chat") return body;
  const text = typeof body === "string" ? body : body.solid.text;
  const members = scanObject(text);
  const edits: Record<string, null> = {};
  for (const name of members.keys()) {
    if (operation === "message" ? uncountedOfMessage.has(name) : !countedOfResponse.has(name)) edits[name] = null;
  }
  return Object.keys(edits).length === 0 ? body : editObject(text, members, edits);
}

async function textOf(body: Parameters<typeof readAll>[0], cancellation: Cancellation): Promise<string> {
  try {
    return (await readAll(body, maxAnswerBytes, cancellation, () => {})).text;
  } catch (error) {
    // vLLM also lists the tokens themselves, so the answer may be too long to read.
    if (error instanceof BodyTooLongError) return "";
    throw error;
  }
}

function countIn(text: string): number | undefined {
  try {
    const { input_tokens: tokens, count } = JSON.parse(text) as { input_tokens?: unknown; count?: unknown };
    const found = tokens ?? count;
    return typeof found === "number" && Number.isSafeInteger(found) && found >= 0 ? found : undefined;
  } catch {
    return undefined;
  }
}
