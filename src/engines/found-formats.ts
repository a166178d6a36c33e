// Finds which conversation formats a server supports: from its settings, from its host, or by asking it.
import type { EngineFormats } from "../domain/models/engine.ts";
import type { ConversationOperation } from "../domain/models/operation.ts";
import { formatsOf, isOpenaiHost, type UpstreamSpeech } from "../domain/models/upstream-speech.ts";
import { type HttpTarget, postText } from "./http-engine.ts";

const probedFormats = ["response", "message"] as const satisfies readonly ConversationOperation[];
type ProbedFormat = (typeof probedFormats)[number];

/**
 * The bodies of requests that any server with the path refuses, for a wrong type and missing members, before it looks
 * for or loads a model. Most servers would refuse an empty object too, but LocalAI takes its first model if none is
 * named.
 */
const senseless: Readonly<Record<ProbedFormat, string>> = {
  response: '{"input":false}',
  message: '{"messages":false}',
};

const maxBytes = 64 * 1024;
const maxMs = 2_000;
/**
 * The number of model lists per probe of the formats. With a model list every 30 s, a server is probed every ten
 * minutes.
 */
const listsPerProbe = 20;

/** Returns the formats that are known without a probe. Undefined if only the server can tell. */
export function knownFormats(url: string, { api, apis }: UpstreamSpeech): EngineFormats | undefined {
  if (apis) return formatsOf(apis);
  if (api === "messages") return formatsOf(["messages"]);
  const { hostname } = new URL(url);
  if (isOpenaiHost(hostname)) return formatsOf(["chat", "responses"]);
  // Anthropic's Messages API needs other headers, which `api: messages` sets.
  return hostname === "api.anthropic.com" ? formatsOf(["chat"]) : undefined;
}

/** The formats of one server, from its settings or its answers. They are kept while the server is unreachable. */
export class FoundFormats {
  readonly #target: HttpTarget;
  readonly #known: EngineFormats | undefined;
  /** The formats that the server was asked for, with true for those that it has, by its last conclusive answer. */
  readonly #has = new Map<ProbedFormat, boolean>();
  /** The number of model lists until the server is probed again. */
  #remaining = 0;
  #probing: Promise<void> | undefined;

  constructor(target: HttpTarget, known: EngineFormats | undefined) {
    this.#target = target;
    this.#known = known;
  }

  /** The formats of the server. Undefined before its first answer. */
  get formats(): EngineFormats | undefined {
    if (this.#known) return this.#known;
    if (this.#has.size === 0) return undefined;
    const found = probedFormats.filter((operation) => this.#has.get(operation));
    return { chat: "whole", ...Object.fromEntries(found.map((operation) => [operation, "functions"])) };
  }

  /** Makes the next model list probe the server again: after an outage it may be another server or version. */
  wasAway(): void {
    this.#remaining = 0;
  }

  /** Called after each model list. Probes the server if that is due. Never rejects, and takes 2 s at most. */
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
 * Asks the server for the formats besides chat completions. A format is left out if the answer is inconclusive. Never
 * rejects.
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
      // The failure is ignored, because the server is probed again after the next model list.
    }
  }
  return answers;
}

/**
 * Returns whether the path exists, by the answer to a request that cannot succeed. Undefined if the answer is
 * inconclusive.
 */
function verdictOf(status: number, text: string): boolean | undefined {
  if (status === 400 || status === 415 || status === 422) return true;
  if (status === 404) return isAboutModel(text);
  // LM Studio answers 200 for unknown paths.
  if (status < 400 || status === 405 || status === 410 || status === 501) return false;
  // Older versions of llama-server, whose JSON library throws.
  if (status === 500 && isAboutMember(text)) return true;
  return undefined;
}

/**
 * Reports whether a 404 comes from an existing path, because it says "no such model" in the words of vLLM, Anthropic or
 * OpenAI.
 */
function isAboutModel(text: string): boolean {
  const { code, param, message } = errorIn(text);
  if (code === "model_not_found" || param === "model") return true;
  return typeof message === "string" && /\bmodel\b/i.test(message) && !/\/(?:responses|messages)\b/.test(message);
}

function isAboutMember(text: string): boolean {
  const { message } = errorIn(text);
  return typeof message === "string" && /\b(?:input|messages|max_tokens|model)\b/.test(message);
}

/** Returns the members of `error` in JSON text, where some servers send a plain text. Empty for anything else. */
function errorIn(text: string): { code?: unknown; param?: unknown; message?: unknown } {
  try {
    const error = (JSON.parse(text) as { error?: unknown } | null)?.error;
    if (typeof error === "string") return { message: error };
    return typeof error === "object" && error !== null ? error : {};
  } catch {
    return {};
  }
}
