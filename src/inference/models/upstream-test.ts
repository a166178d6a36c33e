// Tests a model server by requesting its list of models, even before it is added as an upstream.
import type { Clock } from "../../base/clock.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Engine } from "../../domain/models/engine.ts";
import { maxModelsShown } from "../../domain/models/upstream.ts";
import { apisOf, type UpstreamSpeech, usualSpeech } from "../../domain/models/upstream-speech.ts";
import type { Principal } from "../../domain/principal.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { Turns } from "../../policy/turns.ts";
import type { UpstreamTestRequest, UpstreamTestWire } from "../../wire/upstreams.ts";
import { describeFault, pollTimeoutMs } from "./engine-fault.ts";
import type { Upstreams } from "./manage-upstreams.ts";
import { requestedSpeech, upstreamApiKey, upstreamUrl } from "./upstream-values.ts";

export interface UpstreamTestsOptions {
  upstreams: Pick<Upstreams, "known">;
  /** Creates an engine for one test. */
  probe(url: string, apiKey: string | undefined, speech: UpstreamSpeech): Engine;
  clock: Clock;
}

const maxAtOnce = 4;
const maxWaiting = 8;

export class UpstreamTests {
  readonly #options: UpstreamTestsOptions;
  readonly #turns = new Turns(maxAtOnce, maxWaiting);

  constructor(options: UpstreamTestsOptions) {
    this.#options = options;
  }

  /** Runs the test. Resolves even if the server fails, because the failure is the result of the test. */
  async run(principal: Principal, request: UpstreamTestRequest): Promise<UpstreamTestWire> {
    requireOperator(principal);
    const engine = this.#engineOf(request);
    const result = this.#turns.run(() => this.#ask(engine));
    if (result) return await result;
    throw new GatewayError("service_unavailable", "Too many upstreams are being tested at once. Retry in 5 s.", {
      retryAfterSeconds: 5,
    });
  }

  #engineOf(request: UpstreamTestRequest): Engine {
    const { name, url, api_key: apiKey } = request;
    if ((name === undefined) === (url === undefined)) {
      throw invalidRequest("name: give either name, of an upstream that there is, or url.");
    }
    if (url !== undefined) {
      const { probe } = this.#options;
      const speech = requestedSpeech(usualSpeech, request);
      return probe(upstreamUrl(url), typeof apiKey === "string" ? upstreamApiKey(apiKey) : undefined, speech);
    }
    if (typeof apiKey === "string") {
      throw invalidRequest("api_key: is only for a url; an upstream is tested with its own key.");
    }
    for (const member of ["api", "apis", "key_header", "query", "cache_salt", "priority", "identifiers"] as const) {
      if (request[member] == null) continue;
      throw invalidRequest(`${member}: is only for a url; an upstream is tested with its own settings.`);
    }
    return this.#options.upstreams.known(name ?? "").engine;
  }

  async #ask(engine: Engine): Promise<UpstreamTestWire> {
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs();
    const end = (models: string[], error: string | null): UpstreamTestWire => {
      const durationMs = Math.round(clock.monotonicMs() - sinceMs);
      const ok = error === null;
      return {
        object: "upstream_test",
        ok,
        duration_ms: durationMs,
        models,
        apis: ok ? apisOf(engine.formats) : [],
        error,
      };
    };
    try {
      const models = await engine.models(AbortSignal.timeout(pollTimeoutMs));
      return end(
        models.slice(0, maxModelsShown).map(({ id }) => id),
        null,
      );
    } catch (error) {
      return end([], describeFault(engine, error));
    }
  }
}
