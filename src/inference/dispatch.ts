// Sends one request to the first deployment that takes it, and turns refusals of engines into errors of the gateway.
import type { BodySource } from "../domain/body-source.ts";
import type { Cancellation } from "../domain/cancellation.ts";
import type { Clock } from "../domain/clock.ts";
import { type Engine, type EngineResponse, type Operation, operationPaths } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";
import { editObject, type Members } from "../domain/json-text.ts";
import type { Deployment, Model } from "../domain/model.ts";
import type { Capacity, Turn } from "./capacity.ts";
import type { Place, Seat } from "./gate.ts";
import type { Router } from "./route.ts";

/** A request as it was decoded: checked, and its text kept. */
export interface DecodedRequest {
  operation: Operation;
  /** The body as the client sent it, its text, and where its top-level members stand. */
  bytes: Uint8Array;
  text: string;
  members: Members;
  body: Readonly<Record<string, unknown>>;
  model: string;
  stream: boolean;
  /** Generations side by side. */
  width: number;
}

export interface Dispatched {
  response: EngineResponse;
  deployment: Deployment;
  /** Call when the body's first byte is here: how soon it comes tells how busy the engine is. May be left out. */
  firstByte(): void;
  /** Ends the request's part in the load and capacity figures; `failed` also puts the engine to rest. */
  done(failed: boolean): void;
}

export interface DispatchDeps {
  router: Router;
  capacity: Capacity;
  clock: Clock;
}

/** A request as its dispatch sees it; told as things happen, as no result tells of one that ended before it had one. */
export interface Sender {
  readonly requestId: string;
  /** Whose turn it is where requests wait. */
  readonly accountId: string;
  /** Whether the gateway keeps the completion: then the engine is not asked to keep it as well. */
  readonly recording: boolean;
  /** Stops it until the response is here. */
  readonly cancellation: Cancellation;
  /** Undefined where the model is no longer offered. */
  modelNow(): Model | undefined;
  waited(ms: number): void;
  sending(): void;
}

/**
 * Times that one deployment is asked: an engine that only has too many requests at the moment is asked again. As often
 * as a limit that nobody knew yet is halved until it is right.
 */
const maxAttempts = 6;
/** Cut before anything is searched for in it. */
const longestMessage = 1_000;
const maxErrorBody = 64 * 1024;
/** The status says enough: what else a broken server has to say is not waited for any longer. */
const errorBodyMs = 3_000;

/**
 * Tries the candidates in order, each once it has capacity. Nothing was delivered yet, so a failed one may be followed
 * by the next; the last failure is the answer. A refusal of the request itself (400 and the like) is final at once.
 */
export async function dispatch(
  request: DecodedRequest,
  model: Model,
  deps: DispatchDeps,
  sender: Sender,
): Promise<Dispatched> {
  const { router, capacity, clock } = deps;
  const { cancellation } = sender;
  const { operation, stream, width } = request;
  const wanted = { accountId: sender.accountId, operation, stream, width, model: request.model };
  let offered = model;
  let attempts: Map<Deployment, number> | undefined;
  let turn: Turn | undefined;
  let failure: GatewayError | undefined;
  for (;;) {
    // Before an engine is asked, or counted as asked: who has left by then pays nothing.
    cancellation.throwIfCancelled();
    const ranked = router.order(offered);
    const candidates = attempts ? untried(ranked, attempts, sender.modelNow()) : ranked;
    if (candidates.length === 0) throw failure ?? notDeployed(request, offered);
    let seat = capacity.take(candidates, wanted);
    if (!seat) {
      turn ??= capacity.arrive();
      const sinceMs = clock.monotonicMs();
      seat = await capacity.wait(candidates, wanted, turn, cancellation).finally(() => {
        sender.waited(clock.monotonicMs() - sinceMs);
      });
    }
    if (!seat) {
      // What there is changed while it waited: it keeps its turn, and goes where the model runs now, never where it ran.
      offered = sender.modelNow() ?? { ...offered, deployments: [] };
      attempts = undefined;
      continue;
    }
    const attempt = new Attempt(seat, router, cancellation);
    let refused: Refused;
    try {
      const response = await attempt.send(request, sender);
      if (response.status >= 200 && response.status < 300) return attempt.taken(response);
      refused = await attempt.refused(response, request);
    } catch (error) {
      refused = attempt.failed(error);
    }
    failure = refused.failure;
    attempts ??= new Map();
    attempts.set(seat.deployment, refused.again ? (attempts.get(seat.deployment) ?? 0) + 1 : maxAttempts);
  }
}

/** A failure can take minutes: what was deleted meanwhile is asked no more. */
function untried(
  ranked: readonly Deployment[],
  attempts: ReadonlyMap<Deployment, number>,
  now: Model | undefined,
): readonly Deployment[] {
  const names = new Set(now?.deployments.map(({ engine }) => engine.name));
  return ranked.filter((one) => (attempts.get(one) ?? 0) < maxAttempts && names.has(one.engine.name));
}

interface Refused {
  failure: GatewayError;
  /** It had too many others at the moment. */
  again: boolean;
}

/** One deployment being asked, and, once it took the request, what `dispatch` gives. */
class Attempt implements Dispatched {
  readonly deployment: Deployment;
  readonly #place: Place;
  readonly #router: Router;
  readonly #cancellation: Cancellation;
  readonly #endLoad: () => void;
  #response: EngineResponse | undefined;

  constructor({ deployment, place }: Seat, router: Router, cancellation: Cancellation) {
    this.deployment = deployment;
    this.#place = place;
    this.#router = router;
    this.#cancellation = cancellation;
    this.#endLoad = router.begin(deployment.engine);
  }

  get response(): EngineResponse {
    if (!this.#response) throw new Error("The deployment was not asked yet.");
    return this.#response;
  }

  send(request: DecodedRequest, sender: Sender): Promise<EngineResponse> {
    const { engine, model } = this.deployment;
    const { operation, stream, width } = request;
    const { requestId } = sender;
    const body = rewriteRequest(request, model, sender.recording);
    sender.sending();
    return engine.send({ requestId, operation, model, body, stream, width }, this.#cancellation);
  }

  taken(response: EngineResponse): Dispatched {
    this.#response = response;
    this.#router.succeeded(this.deployment.engine);
    return this;
  }

  /** Throws where no other deployment would answer otherwise. */
  async refused(response: EngineResponse, request: DecodedRequest): Promise<Refused> {
    const refusal = await refusalOf(response, this.deployment, request);
    if (refusal.final) throw refusal.error;
    const again = isBusy(refusal.error, this.#place) && response.headers.get("retry-after") === null;
    // One model that is missing, or one credential that is wrong, says nothing of the engine's other models; nor is an
    // engine broken that has too much to do.
    if (!refusal.local && !again) this.#router.failed(this.deployment.engine);
    this.#end();
    return { failure: refusal.error, again };
  }

  /** Throws what is no fault of the engine. */
  failed(error: unknown): Refused {
    const isFault = !this.#cancellation.cancelled && error instanceof GatewayError && isEngineFault(error);
    if (isFault) {
      if (error.code === "upstream_timeout") this.#place.refused();
      this.#router.failed(this.deployment.engine);
    }
    this.#end();
    if (!isFault) throw error;
    return { failure: error, again: false };
  }

  firstByte(): void {
    this.#place.answered();
  }

  done(failed: boolean): void {
    // An answer that nobody waited for says nothing of how long it takes.
    if (!failed && !this.#cancellation.cancelled) this.#place.answered();
    if (failed) this.#router.failed(this.deployment.engine);
    this.#end();
  }

  #end(): void {
    this.#endLoad();
    this.#place.release();
  }
}

/** Tells the capacity figures of a refusal for want of capacity; whether the engine works on others meanwhile. */
function isBusy(error: GatewayError, place: Place): boolean {
  if (error.code !== "service_unavailable" && error.code !== "upstream_timeout") return false;
  place.refused();
  return error.code === "service_unavailable" && place.gate.inFlight > 0;
}

function notDeployed(request: DecodedRequest, { deployments }: Model): GatewayError {
  const message =
    deployments.length === 0
      ? `The model \`${request.model}\` has no deployment that is configured now.`
      : `The model \`${request.model}\` takes no new requests at the moment: where it runs is being taken out of service.`;
  return new GatewayError("service_unavailable", message, { retryAfterSeconds: 30 });
}

/**
 * The body for an engine: the client's own bytes, except where `model` has another id there, where usage must be asked
 * for (it is always counted), where the gateway keeps the completion itself, and where both names of the token limit were sent.
 */
function rewriteRequest(request: DecodedRequest, engineModel: string, recording: boolean): string | Uint8Array {
  const { body, operation } = request;
  const edits: Record<string, string | null> = {};
  if (engineModel !== request.model) edits["model"] = JSON.stringify(engineModel);
  if (request.stream && operation !== "embedding") {
    const options = body["stream_options"] as { include_usage?: unknown } | null | undefined;
    if (options?.include_usage !== true) {
      edits["stream_options"] = JSON.stringify({ ...options, include_usage: true });
    }
  }
  if (recording) for (const name of ["store", "metadata"]) if (body[name] !== undefined) edits[name] = null;
  const limit = body["max_completion_tokens"];
  if (limit !== undefined && limit !== null && body["max_tokens"] !== undefined) edits["max_tokens"] = null;
  return Object.keys(edits).length === 0 ? request.bytes : editObject(request.text, request.members, edits);
}

function isEngineFault(error: GatewayError): boolean {
  return error.code === "upstream_error" || error.code === "upstream_timeout" || error.code === "service_unavailable";
}

async function refusalOf(
  response: EngineResponse,
  { engine, model }: Deployment,
  request: DecodedRequest,
): Promise<{ error: GatewayError; final: boolean; local?: boolean }> {
  const { status } = response;
  const said = publicMessage(await readStart(response.body), engine);
  const detail = `${engine.name} answered ${status} for ${model} at ${operationPaths[request.operation]}`;
  if (status === 400 || status === 422) {
    return {
      error: new GatewayError("invalid_request", said ?? "The model server refused the request.", { detail }),
      final: true,
    };
  }
  if (status === 413) {
    return {
      error: new GatewayError("request_too_large", said ?? "The request is too large for this model.", { detail }),
      final: true,
    };
  }
  if (status === 429 || status === 503) {
    const retryAfterSeconds = retryAfter(response.headers);
    const message = `The model \`${request.model}\` has no free capacity now. Retry in ${retryAfterSeconds} s.`;
    const error = new GatewayError("service_unavailable", message, { detail, retryAfterSeconds, refusal: "capacity" });
    return { error, final: false };
  }
  if (status === 408 || status === 504) {
    return {
      error: new GatewayError("upstream_timeout", "The model server did not answer in time.", { detail }),
      final: false,
    };
  }
  const reason =
    status === 401 || status === 403
      ? "The model server refused the gateway's own credentials; its operator has to mend that."
      : status === 404
        ? `The model server does not serve \`${request.model}\` at the moment.`
        : "The model server failed.";
  const local = status === 401 || status === 403 || status === 404;
  return { error: new GatewayError("upstream_error", reason, { detail }), final: false, local };
}

/** Whole seconds from an engine's `Retry-After` (RFC 9110, 10.2.3; seconds only), 1 to 60, else 5. */
function retryAfter(headers: EngineResponse["headers"]): number {
  const seconds = Number(headers.get("retry-after"));
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(Math.ceil(seconds), 60) : 5;
}

/**
 * What an engine said about a bad request, fit for a client: its `error.message` without addresses and without anything
 * that looks like a credential. Undefined where there is none.
 */
export function publicMessage(text: string, engine: Engine): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { error, message, detail } = (value ?? {}) as { error?: unknown; message?: unknown; detail?: unknown };
  const nested = typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
  const said = [nested, message, detail].find((candidate) => typeof candidate === "string" && candidate !== "");
  if (typeof said !== "string") return undefined;
  return engine
    .redact(said)
    .slice(0, longestMessage)
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, "[address]")
    .replace(/\b(?:sk|pk|key|hf|gsk|AIza)[-_][\w-]{8,}|\bBearer\s+\S+|\b[A-Za-z0-9_-]{40,}\b/g, "[redacted]");
}

/** What came within the bounds of size and time: the status says enough. */
function readStart(body: BodySource): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer);
      body.cancel();
      resolve(text);
    };
    const timer = setTimeout(stop, errorBodyMs);
    body.flow({
      data(bytes) {
        text += decoder.decode(bytes, { stream: true });
        if (text.length > maxErrorBody) stop();
      },
      end: stop,
      fail: stop,
    });
  });
}
