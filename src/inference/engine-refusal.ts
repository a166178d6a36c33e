// Turns what an engine answered in place of an answer into an error of the gateway.
import type { BodySource } from "../domain/body-source.ts";
import { type Engine, type EngineResponse, operationPaths } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Deployment } from "../domain/model.ts";
import type { DecodedRequest } from "./decoded-request.ts";

/** Cut before anything is searched for in it. */
const longestMessage = 1_000;
const maxErrorBody = 64 * 1024;
/** The status says enough: what else a broken server has to say is not waited for any longer. */
const errorBodyMs = 3_000;

/** Whether it says that an engine did not answer, and not that the request is at fault. */
export function isEngineFault(error: GatewayError): boolean {
  return error.code === "upstream_error" || error.code === "upstream_timeout" || error.code === "service_unavailable";
}

/** `final`: no other deployment would answer otherwise. */
export async function refusalOf(
  response: EngineResponse,
  { engine, model }: Deployment,
  request: DecodedRequest,
): Promise<{ error: GatewayError; final: boolean }> {
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
  return { error: new GatewayError("upstream_error", reason, { detail }), final: false };
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
        text += decoder.decode(bytes.view, { stream: true });
        if (text.length > maxErrorBody) stop();
      },
      end: stop,
      fail: stop,
    });
  });
}
