// Finds which conversation formats a server supports: from its settings, from its host, or by asking it.
import type { EngineFormats } from "../domain/models/engine.ts";
import type { ConversationOperation } from "../domain/models/operation.ts";
import { formatsOf, isOpenaiHost, type UpstreamSpeech } from "../domain/models/upstream-speech.ts";
import { type HttpTarget, postText } from "./http-engine.ts";

const probedFormats = ["response", "message"] as const satisfies readonly ConversationOperation[];
type ProbedFormat = (typeof probedFormats)[number];

/**
 * Any server with the path refuses these for a wrong type and missing members, before it looks for or loads a model.
 * Most would refuse an empty object too, but LocalAI takes its first model if none is named.
 */
const senseless: Readonly<Record<ProbedFormat, string>> = {
  response: '{"input":false}',
  message: '{"messages":false}',
};

const maxBytes = 64 * 1024;
const maxMs = 2_000;
/** With a model list every 30 s, there are ten minutes between two checks. */
const listsPerProbe = 20;

/** The formats that are known without asking. Undefined if only the server can tell. */
export function knownFormats(url: string, { api, apis }: UpstreamSpeech): EngineFormats | undefined {
  if (apis) return formatsOf(apis);
  if (api === "messages") return formatsOf(["messages"]);
  const { hostname } = new URL(url);
  if (isOpenaiHost(hostname)) return formatsOf(["chat", "responses"]);
  // Anthropic's Messages API needs other headers, which `api: messages` sets.
  return hostname === "api.anthropic.com" ? formatsOf(["chat"]) : undefined;
}

/** What is known of one server, from its settings or its answers. It is kept while the server is unreachable. */
export class FoundFormats {
  readonly #target: HttpTarget;
  readonly #known: EngineFormats | undefined;
  /** From the last conclusive answer. */
  readonly #has = new Map<ProbedFormat, boolean>();
  /** Model lists until the server is asked again. */
  #remaining = 0;
  #probing: Promise<void> | undefined;

  constructor(target: HttpTarget, known: EngineFormats | undefined) {
    this.#target = target;
    this.#known = known;
  }

  /** Undefined before the first answer. */
  get formats(): EngineFormats | undefined {
    if (this.#known) return this.#known;
    if (this.#has.size === 0) return undefined;
    const found = probedFormats.filter((operation) => this.#has.get(operation));
    return { chat: "whole", ...Object.fromEntries(found.map((operation) => [operation, "functions"])) };
  }

  /** After an outage the server may have another version. */
  wasAway(): void {
    this.#remaining = 0;
  }

  /** Called after each model list. Asks the server if that is due. Never rejects, and takes 2 s at most. */
  async listed(signal: AbortSignal): Promise<void> {
    if (this.#known) return;
    if (this.#remaining > 0) this.#remaining--;
    else this.#probing ??= this.#probe(signal);
    await this.#probing;
  }

  async #probe(signal: AbortSignal): Promise<void> {
    const answers = await probeFormats(this.#target, signal);
    for (const [operation, has] of answers) this.#has.set(operation, has);
    this.#remaining = answers.size === probedFormats.length ? listsPerProbe - 1 : 0;
    this.#probing = undefined;
  }
}

/**
 * The formats besides chat completions, by the server's answers. Left out if an answer is inconclusive. Never rejects.
 */
export async function probeFormats(
  target: HttpTarget,
  signal: AbortSignal,
): Promise<ReadonlyMap<ProbedFormat, boolean>> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(maxMs)]);
  const answers = new Map<ProbedFormat, boolean>();
  for (const operation of probedFormats) {
    try {
      const { status, text } = await postText(target, operation, senseless[operation], maxBytes, limit);
      const has = verdictOf(status, text ?? "");
      if (has !== undefined) answers.set(operation, has);
    } catch {
      // The reason does not matter, since the server is asked again after the next model list.
    }
  }
  return answers;
}

/** Whether the path exists, by the answer to a request that cannot succeed. Undefined if inconclusive. */
function verdictOf(status: number, text: string): boolean | undefined {
  if (status === 400 || status === 415 || status === 422) return true;
  if (status === 404) return isAboutModel(text);
  // LM Studio answers 200 for unknown paths.
  if (status < 400 || status === 405 || status === 410 || status === 501) return false;
  // Older versions of llama-server, whose JSON library throws.
  if (status === 500 && isAboutMember(text)) return true;
  return undefined;
}

/** A 404 from an existing path: no such model, in the words of vLLM, Anthropic and OpenAI. */
function isAboutModel(text: string): boolean {
  const { code, param, message } = errorIn(text);
  if (code === "model_not_found" || param === "model") return true;
  return typeof message === "string" && /\bmodel\b/i.test(message) && !/\/(?:responses|messages)\b/.test(message);
}

function isAboutMember(text: string): boolean {
  const { message } = errorIn(text);
  return typeof message === "string" && /\b(?:input|messages|max_tokens|model)\b/.test(message);
}

/** The members of `error` in JSON text; some servers send a plain text there. Empty for anything else. */
function errorIn(text: string): { code?: unknown; param?: unknown; message?: unknown } {
  try {
    const error = (JSON.parse(text) as { error?: unknown } | null)?.error;
    if (typeof error === "string") return { message: error };
    return typeof error === "object" && error !== null ? error : {};
  } catch {
    return {};
  }
}
