// An OpenAI-compatible server as an engine: Ollama, vLLM, SGLang, llama-server, LM Studio, LocalAI, or a cloud API.
import type { Cancellation } from "../domain/cancellation.ts";
import type { Engine, EngineLoad, EngineModel, EngineRequest, EngineResponse } from "../domain/engine.ts";
import { getModels, type HttpClientKind, type HttpTarget, httpTarget, postJson } from "./http-engine.ts";
import { getServerLoad } from "./server-load.ts";

const shortestSecret = 8;

export interface UpstreamOptions {
  name: string;
  /** Base URL, usually ending in `/v1`. */
  url: string;
  apiKey?: string | undefined;
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
  /** Most requests at once; undefined: measured. */
  maxConcurrency: number | undefined;
  httpClient: HttpClientKind;
}

export class UpstreamEngine implements Engine {
  readonly name: string;
  readonly maxConcurrency: number | undefined;
  readonly #target: HttpTarget;

  constructor(options: UpstreamOptions) {
    this.name = options.name;
    this.maxConcurrency = options.maxConcurrency;
    this.#target = httpTarget(options);
  }

  send(request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse> {
    return postJson(this.#target, request, cancellation);
  }

  models(signal: AbortSignal): Promise<EngineModel[]> {
    return getModels(this.#target, signal);
  }

  load(signal: AbortSignal): Promise<EngineLoad | undefined> {
    return getServerLoad(this.#target, signal);
  }

  redact(text: string): string {
    const { apiKey } = this.#target;
    // A placeholder such as `ollama` is no secret, but a word that messages use.
    return apiKey && apiKey.length >= shortestSecret ? text.replaceAll(apiKey, "[redacted]") : text;
  }
}
