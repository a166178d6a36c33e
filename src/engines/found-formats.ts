// Finds which conversation formats a server supports: from its settings, from its host, or by asking it.
import type { EngineFormats } from "../domain/models/engine.ts";
import type { ConversationOperation } from "../domain/models/operation.ts";
import { formatsOf, isOpenaiHost, type UpstreamSpeech } from "../domain/models/upstream-speech.ts";
import { type HttpTarget, postText } from "./http-engine.ts";

const looksFor = ["response", "message"] as const satisfies readonly ConversationOperation[];
type LookedFor = (typeof looksFor)[number];

/**
 * Refused by whoever has the path, for a member of a wrong type and others that are missing, before a model is looked
 * for or loaded. An empty object would do at most of them; LocalAI takes its first model where none is named.
 */
const senseless: Readonly<Record<LookedFor, string>> = { response: '{"input":false}', message: '{"messages":false}' };

const maxBytes = 64 * 1024;
const maxMs = 2_000;
/** With a list of models every 30 s, it is ten minutes from one look to the next. */
const listsPerLook = 20;

/** Formats that nobody needs to ask for; undefined where only the server can tell. */
export function knownFormats(url: string, { api, apis }: UpstreamSpeech): EngineFormats | undefined {
  if (apis) return formatsOf(apis);
  if (api === "messages") return formatsOf(["messages"]);
  const { hostname } = new URL(url);
  if (isOpenaiHost(hostname)) return formatsOf(["chat", "responses"]);
  // Its Messages API wants other headers, which `api: messages` brings along.
  return hostname === "api.anthropic.com" ? formatsOf(["chat"]) : undefined;
}

/** What is known of one server, from its settings or from its answers; it survives while the server is away. */
export class FoundFormats {
  readonly #target: HttpTarget;
  readonly #known: EngineFormats | undefined;
  /** By the last answer that said so. */
  readonly #has = new Map<LookedFor, boolean>();
  /** Lists of models until it is asked again. */
  #left = 0;
  #looking: Promise<void> | undefined;

  constructor(target: HttpTarget, known: EngineFormats | undefined) {
    this.#target = target;
    this.#known = known;
  }

  /** Undefined before the first answer. */
  get formats(): EngineFormats | undefined {
    if (this.#known) return this.#known;
    if (this.#has.size === 0) return undefined;
    const found = looksFor.filter((operation) => this.#has.get(operation));
    return { chat: "whole", ...Object.fromEntries(found.map((operation) => [operation, "functions"])) };
  }

  /** The server may be another one, or of another version, when it is back. */
  wasAway(): void {
    this.#left = 0;
  }

  /** Called each time that it listed its models; asks it where it is time. Never rejects, and takes 2 s at most. */
  async listed(signal: AbortSignal): Promise<void> {
    if (this.#known) return;
    if (this.#left > 0) this.#left--;
    else this.#looking ??= this.#look(signal);
    await this.#looking;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const answers = await lookForFormats(this.#target, signal);
    for (const [operation, has] of answers) this.#has.set(operation, has);
    this.#left = answers.size === looksFor.length ? listsPerLook - 1 : 0;
    this.#looking = undefined;
  }
}

/** What the server says of the formats besides chat completions; left out where it does not say. Never rejects. */
export async function lookForFormats(
  target: HttpTarget,
  signal: AbortSignal,
): Promise<ReadonlyMap<LookedFor, boolean>> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(maxMs)]);
  const answers = new Map<LookedFor, boolean>();
  for (const operation of looksFor) {
    try {
      const { status, text } = await postText(target, operation, senseless[operation], maxBytes, limit);
      const has = tellsOf(status, text ?? "");
      if (has !== undefined) answers.set(operation, has);
    } catch {
      // It does not matter why it did not answer: it is asked again with the next list of its models.
    }
  }
  return answers;
}

/** Whether the path is there, by what came of a request that nobody can fulfil; undefined where that says nothing. */
function tellsOf(status: number, text: string): boolean | undefined {
  if (status === 400 || status === 415 || status === 422) return true;
  if (status === 404) return isAboutModel(text);
  // LM Studio answers 200 to paths that it does not know.
  if (status < 400 || status === 405 || status === 410 || status === 501) return false;
  // Earlier versions of llama-server, whose JSON library throws.
  if (status === 500 && isAboutMember(text)) return true;
  return undefined;
}

/** A 404 of a path that is there: no such model, as vLLM, Anthropic and OpenAI say it. */
function isAboutModel(text: string): boolean {
  const { code, param, message } = errorIn(text);
  if (code === "model_not_found" || param === "model") return true;
  return typeof message === "string" && /\bmodel\b/i.test(message) && !/\/(?:responses|messages)\b/.test(message);
}

function isAboutMember(text: string): boolean {
  const { message } = errorIn(text);
  return typeof message === "string" && /\b(?:input|messages|max_tokens|model)\b/.test(message);
}

/** The members of `error` in JSON text, which some servers give as text alone; none where it is something else. */
function errorIn(text: string): { code?: unknown; param?: unknown; message?: unknown } {
  try {
    const error = (JSON.parse(text) as { error?: unknown } | null)?.error;
    if (typeof error === "string") return { message: error };
    return typeof error === "object" && error !== null ? error : {};
  } catch {
    return {};
  }
}
