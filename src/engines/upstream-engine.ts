// An engine whose model server is reached over HTTP: Ollama, vLLM, SGLang, llama-server, LM Studio, LocalAI, or
// a cloud API.
import type { MessageLinkListener, PausableLink } from "../base/bytes/message-link.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { MaybePromise } from "../base/deferred.ts";
import type {
  ChatContinuation,
  CountRequest,
  Engine,
  EngineFormats,
  EngineLoad,
  EngineModel,
  EngineRequest,
  EngineResponse,
  RealtimeRequest,
} from "../domain/models/engine.ts";
import type { Isolation } from "../domain/models/isolation.ts";
import { isolationOf, type UpstreamSpeech } from "../domain/models/upstream-speech.ts";
import { redactSecrets } from "../domain/redaction.ts";
import { FoundFormats, knownFormats } from "./found-formats.ts";
import { type HttpClientKind, type HttpTarget, httpTarget, postJson } from "./http-engine.ts";
import { getModels } from "./model-list.ts";
import { connectRealtime } from "./realtime.ts";
import { getServerLoad } from "./server-load.ts";
import { TokenCounter } from "./token-count.ts";

/** Servers that can continue an unfinished assistant message, by the `owned_by` of their model lists. */
const continuations: ReadonlyMap<string, ChatContinuation> = new Map([
  ["llamacpp", "last_message"],
  ["vllm", "flag"],
  ["sglang", "flag"],
]);

export interface UpstreamOptions {
  name: string;
  /** Base URL, usually ending in `/v1`. */
  url: string;
  apiKey?: string | undefined;
  speech: UpstreamSpeech;
  /** True if an operator marked the server as local. Default: false. */
  local?: boolean;
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
  /** The maximum number of parallel requests. If undefined, the gateway finds it by measuring. */
  maxConcurrency: number | undefined;
  httpClient: HttpClientKind;
}

export class UpstreamEngine implements Engine {
  readonly name: string;
  readonly maxConcurrency: number | undefined;
  readonly isolation: Isolation;
  readonly server: { readonly address: string; readonly port: number };
  readonly #target: HttpTarget;
  readonly #counter: TokenCounter;
  readonly #found: FoundFormats;
  /** Describes how each model of the last model list continues an unfinished assistant message. */
  #continued: ReadonlyMap<string, ChatContinuation> = new Map();

  constructor(options: UpstreamOptions) {
    this.name = options.name;
    this.maxConcurrency = options.maxConcurrency;
    this.isolation = isolationOf(options.speech, options.local === true);
    this.server = serverOf(options.url);
    this.#target = httpTarget(options);
    this.#counter = new TokenCounter(this.#target);
    this.#found = new FoundFormats(this.#target, knownFormats(options.url, options.speech));
  }

  get formats(): EngineFormats | undefined {
    return this.#found.formats;
  }

  continues(model: string): ChatContinuation | undefined {
    return this.#continued.get(model);
  }

  send(request: EngineRequest, cancellation: Cancellation): MaybePromise<EngineResponse> {
    return postJson(this.#target, request, cancellation);
  }

  connectRealtime(
    request: RealtimeRequest,
    listen: (link: PausableLink) => MessageLinkListener,
  ): Promise<PausableLink> {
    return connectRealtime(this.#target, request, listen);
  }

  /**
   * Lists the server's models, and probes its API formats if that is due. Leaves out a model whose name contains
   * the credential, because the name must not be shown, and could not be requested once masked.
   */
  async models(signal: AbortSignal): Promise<EngineModel[]> {
    const models = await this.#list(signal);
    this.#continued = continuationsOf(models);
    await this.#found.listed(models, signal);
    return models
      .filter(({ id }) => this.redact(id) === id)
      .map((model) => (model.ownedBy === undefined ? model : { ...model, ownedBy: this.redact(model.ownedBy) }));
  }

  countTokens(request: CountRequest, cancellation: Cancellation): Promise<number | undefined> {
    return this.#counter.count(request, cancellation);
  }

  async #list(signal: AbortSignal): Promise<EngineModel[]> {
    try {
      return await getModels(this.#target, signal);
    } catch (error) {
      this.#found.wasAway();
      throw error;
    }
  }

  load(signal: AbortSignal): Promise<EngineLoad | undefined> {
    return getServerLoad(this.#target, signal);
  }

  redact(text: string): string {
    const { apiKey } = this.#target;
    return apiKey ? redactSecrets(text, [apiKey]) : text;
  }
}

function continuationsOf(models: readonly EngineModel[]): ReadonlyMap<string, ChatContinuation> {
  const found = new Map<string, ChatContinuation>();
  for (const { id, ownedBy = "" } of models) {
    const how = continuations.get(ownedBy);
    if (how) found.set(id, how);
  }
  return found;
}

function serverOf(baseUrl: string): { address: string; port: number } {
  const { hostname, port, protocol } = new URL(baseUrl);
  const usual = protocol === "https:" ? 443 : 80;
  return { address: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? usual : Number(port) };
}
