// Finds which APIs a model server supports (chat, Responses, Messages): by its settings, its host, or a probe.
import type { EngineFormats, EngineModel } from "../domain/models/engine.ts";
import type { ConversationOperation } from "../domain/models/operation.ts";
import { formatsOf, isOpenaiHost, type UpstreamSpeech } from "../domain/models/upstream-speech.ts";
import { type HttpTarget, postText } from "./http-engine.ts";

const probedFormats = ["response", "message"] as const satisfies readonly ConversationOperation[];
type ProbedFormat = (typeof probedFormats)[number];

/**
 * Invalid bodies for the probe. A server that has the path refuses them before it loads a model. They are not
 * empty objects, because LocalAI answers those with its first model.
 */
const senseless: Readonly<Record<ProbedFormat, string>> = {
  response: '{"input":false}',
  message: '{"messages":false}',
};

/**
 * Formats that are not used although a server has them, by the `owned_by` of its model list. SGLang refuses or ignores
 * function tools in Responses for most models (sgl-project/sglang#13292), but not in chat completions.
 */
const unusable: ReadonlyMap<string | undefined, ProbedFormat> = new Map([["sglang", "response"]]);

const maxBytes = 64 * 1024;
const maxMs = 2_000;
/** The server is probed once per this many model lists. With a list every 30 s, that is every ten minutes. */
const listsPerProbe = 20;

/** Returns the formats of a server by its settings or its host. Undefined if it must be probed. */
export function knownFormats(url: string, { api, apis }: UpstreamSpeech): EngineFormats | undefined {
  if (apis) return formatsOf(apis);
  if (api === "messages") return formatsOf(["messages"]);
  const { hostname } = new URL(url);
  if (isOpenaiHost(hostname)) return formatsOf(["chat", "responses"]);
  // The Messages API of this host needs other headers, which `api: messages` sets.
  return hostname === "api.anthropic.com" ? formatsOf(["chat"]) : undefined;
}

/** The API formats of one server. They are kept while the server is unreachable. */
export class FoundFormats {
  readonly #target: HttpTarget;
  readonly #known: EngineFormats | undefined;
  /** True for each format that the server has, by its last conclusive answer. */
  readonly #has = new Map<ProbedFormat, boolean>();
  #unusable: ProbedFormat | undefined;
  /** The number of model lists until the next probe. */
  #remaining = 0;
  #probing: Promise<void> | undefined;

  constructor(target: HttpTarget, known: EngineFormats | undefined) {
    this.#target = target;
    this.#known = known;
  }

  /** The formats of the server. Undefined before its first conclusive answer. */
  get formats(): EngineFormats | undefined {
    if (this.#known) return this.#known;
    if (this.#has.size === 0) return undefined;
    const found = probedFormats.filter((operation) => this.#has.get(operation) && operation !== this.#unusable);
    return { chat: "whole", ...Object.fromEntries(found.map((operation) => [operation, "functions"])) };
  }

  /** Makes the next model list probe the formats again, because after an outage the server may have another version. */
  wasAway(): void {
    this.#remaining = 0;
  }

  /** Call this after each model list. Probes the server if a probe is due. Never rejects, and takes at most 2 s. */
  async listed(models: readonly Pick<EngineModel, "ownedBy">[], signal: AbortSignal): Promise<void> {
    if (this.#known) return;
    this.#unusable = models.map(({ ownedBy }) => unusable.get(ownedBy)).find((format) => format !== undefined);
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

/** Probes the server for Responses and Messages. A format without a conclusive answer is left out. Never rejects. */
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
 * Returns whether the server has the path, by its answer to an invalid request. Undefined if the answer is
 * inconclusive.
 */
function verdictOf(status: number, text: string): boolean | undefined {
  if (status === 400 || status === 415 || status === 422) return true;
  if (status === 404) return isAboutModel(text);
  // LM Studio answers 200 for unknown paths.
  if (status < 400 || status === 405 || status === 410 || status === 501) return false;
  // Older versions of llama-server answer 500, because their JSON library throws.
  if (status === 500 && isAboutMember(text)) return true;
  return undefined;
}

/**
 * Reports whether a 404 is about an unknown model, so that the path exists. Recognizes the errors of vLLM,
 * Anthropic and OpenAI.
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

/** Returns the members of `error` in JSON text. An `error` that is a string is returned as its message. */
function errorIn(text: string): { code?: unknown; param?: unknown; message?: unknown } {
  try {
    const error = (JSON.parse(text) as { error?: unknown } | null)?.error;
    if (typeof error === "string") return { message: error };
    return typeof error === "object" && error !== null ? error : {};
  } catch {
    return {};
  }
}
