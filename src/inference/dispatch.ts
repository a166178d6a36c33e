// Sends one request to the first deployment that takes it, and turns refusals of engines into errors of the gateway.

import { type Engine, type EngineResponse, type Operation, operationPaths } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";
import { editObject, type Members } from "../domain/json-text.ts";
import type { Deployment, Model } from "../domain/model.ts";
import type { Router } from "./route.ts";

/** A request as it was decoded: checked, and its text kept. */
export interface DecodedRequest {
  operation: Operation;
  /** Body text as the client sent it, and where its top-level members stand. */
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
  /** Ends the request's part in the load figures; `failed` also puts the engine to rest. */
  done(failed: boolean): void;
}

/** Cut before anything is searched for in it. */
const longestMessage = 1_000;
const maxErrorBody = 64 * 1024;
/** The status says enough: what else a broken server has to say is not waited for any longer. */
const errorBodyMs = 3_000;

/**
 * Tries the candidates in order. Nothing was delivered yet, so a failed one may be followed by the next; the last
 * failure is the answer. A refusal of the request itself (400 and the like) is final at once.
 */
export async function dispatch(
  request: DecodedRequest,
  model: Model,
  router: Router,
  signal: AbortSignal,
): Promise<Dispatched> {
  let failure: GatewayError | undefined;
  for (const deployment of router.order(model)) {
    const { engine } = deployment;
    const end = router.begin(engine);
    try {
      const body = rewriteRequest(request, deployment.model);
      const { operation, stream, width } = request;
      const response = await engine.send({ operation, model: deployment.model, body, stream, width }, signal);
      if (response.status >= 200 && response.status < 300) {
        router.succeeded(engine);
        return {
          response,
          deployment,
          done(failed) {
            end();
            if (failed) router.failed(engine);
          },
        };
      }
      const refusal = await refusalOf(response, deployment, request);
      end();
      if (refusal.final) throw refusal.error;
      failure = refusal.error;
      // One model that is missing, or one credential that is wrong, says nothing of the engine's other models.
      if (refusal.local) continue;
    } catch (error) {
      end();
      if (signal.aborted || !(error instanceof GatewayError) || !isEngineFault(error)) throw error;
      failure = error;
    }
    router.failed(engine);
  }
  throw (
    failure ??
    new GatewayError(
      "service_unavailable",
      `The model \`${request.model}\` has no deployment that is configured now.`,
      {
        retryAfterSeconds: 30,
      },
    )
  );
}

/**
 * The body for an engine: the client's own bytes, except where `model` has another id there, where usage must be asked
 * for (it is always counted), and where both names of the token limit were sent.
 */
function rewriteRequest(request: DecodedRequest, engineModel: string): string {
  const { body, operation } = request;
  const edits: Record<string, string | null> = {};
  if (engineModel !== request.model) edits["model"] = JSON.stringify(engineModel);
  if (request.stream && operation !== "embedding") {
    const options = body["stream_options"] as { include_usage?: unknown } | null | undefined;
    if (options?.include_usage !== true) {
      edits["stream_options"] = JSON.stringify({ ...options, include_usage: true });
    }
  }
  const limit = body["max_completion_tokens"];
  if (limit !== undefined && limit !== null && body["max_tokens"] !== undefined) edits["max_tokens"] = null;
  return Object.keys(edits).length === 0 ? request.text : editObject(request.text, request.members, edits);
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
    return { error: new GatewayError("service_unavailable", message, { detail, retryAfterSeconds }), final: false };
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
function retryAfter(headers: Headers): number {
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

async function readStart(body: ReadableStream<Uint8Array> | null): Promise<string> {
  if (!body) return "";
  const decoder = new TextDecoder();
  let text = "";
  const reader = body.getReader();
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), errorBodyMs);
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return text + decoder.decode();
      text += decoder.decode(value, { stream: true });
      if (text.length > maxErrorBody) return text;
    }
  } catch {
    return text;
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}
