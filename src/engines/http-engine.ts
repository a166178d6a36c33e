// Sends requests to a model server over HTTP with `fetch`: headers, time limits, and what an OpenAI `/models` list says.
import { type EngineModel, type EngineRequest, type EngineResponse, operationPaths } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";

export interface HttpTarget {
  /** For error details. */
  name: string;
  /** Base URL to which `/chat/completions` and the like are appended; no trailing slash. */
  url: string;
  apiKey?: string | undefined;
  /** Path of a Unix domain socket to connect to instead of the URL's host. */
  unix?: string | undefined;
  /** Wait for the status line. */
  firstByteTimeoutMs: number;
}

const maxListBytes = 8 * 1024 * 1024;

/**
 * POSTs the body. Nothing of the client's headers goes along, redirects are not followed (the credential would follow
 * them), and compression is not asked for (an event stream must not wait in a decoder).
 */
export async function postJson(
  target: HttpTarget,
  request: EngineRequest,
  signal: AbortSignal,
): Promise<EngineResponse> {
  const headers = requestHeaders(target);
  headers["content-type"] = "application/json";
  headers["x-request-id"] = request.requestId;
  headers["accept"] = request.stream ? "text/event-stream" : "application/json";
  const init = { method: "POST", body: request.body, headers };
  const response = await send(target, operationPaths[request.operation], init, signal);
  return { status: response.status, headers: response.headers, body: response.body };
}

/** GET /models. Rejects where the answer is not an OpenAI model list. */
export async function getModels(target: HttpTarget, signal: AbortSignal): Promise<EngineModel[]> {
  const response = await send(target, "/models", { method: "GET", headers: requestHeaders(target) }, signal);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new GatewayError("upstream_error", `GET /models answered ${response.status}`, { detail: target.name });
  }
  return parseModels(await readList(response));
}

async function readList(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    // Leaving the loop cancels the rest.
    if (size > maxListBytes) throw new GatewayError("upstream_error", "GET /models answered too much");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString();
}

/** Reads a model list, with the extensions of vLLM (`max_model_len`), LM Studio, and llama-server (`meta`). */
export function parseModels(text: string): EngineModel[] {
  const value: unknown = JSON.parse(text);
  const data = (value as { data?: unknown } | null)?.data;
  if (!Array.isArray(data)) throw new GatewayError("upstream_error", "GET /models answered no model list");
  const models: EngineModel[] = [];
  for (const entry of data as Record<string, unknown>[]) {
    const id = entry?.["id"];
    if (typeof id !== "string" || id === "" || id.length > 256) continue;
    const { created, owned_by: ownedBy, capabilities } = entry;
    const meta = entry["meta"] as { n_ctx?: unknown } | null | undefined;
    const context = [entry["context_length"], entry["max_model_len"], entry["max_context_length"], meta?.n_ctx].find(
      isCount,
    );
    models.push({
      id,
      ...(typeof ownedBy === "string" && ownedBy !== "" ? { ownedBy } : {}),
      ...(isCount(created) ? { created } : {}),
      ...(context === undefined ? {} : { context }),
      ...readCapabilities(capabilities),
    });
  }
  return models;
}

/** Only booleans under our own names count; some servers list capability names of their own instead. */
function readCapabilities(value: unknown): Pick<EngineModel, "capabilities"> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  const { chat, completion, embeddings } = value as Record<string, unknown>;
  const capabilities = {
    ...(typeof chat === "boolean" ? { chat } : {}),
    ...(typeof completion === "boolean" ? { completion } : {}),
    ...(typeof embeddings === "boolean" ? { embeddings } : {}),
  };
  return Object.keys(capabilities).length > 0 ? { capabilities } : {};
}

function requestHeaders(target: HttpTarget): Record<string, string> {
  return {
    "user-agent": "headrace",
    "accept-encoding": "identity",
    ...(target.apiKey ? { authorization: `Bearer ${target.apiKey}` } : {}),
  };
}

async function send(target: HttpTarget, path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
  // Cleared at the status line: AbortSignal.timeout would cut the body as well.
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), target.firstByteTimeoutMs);
  try {
    return await fetch(target.url + path, {
      ...init,
      signal: AbortSignal.any([signal, limit.signal]),
      redirect: "manual",
      decompress: false,
      ...(target.unix ? { unix: target.unix } : {}),
    });
  } catch (error) {
    if (signal.aborted) throw error;
    const cause = error instanceof Error ? error.message : String(error);
    const detail = `${target.name}: ${cause}`;
    if (limit.signal.aborted) {
      const seconds = Math.round(target.firstByteTimeoutMs / 1000);
      throw new GatewayError("upstream_timeout", `The model server did not answer within ${seconds} s.`, { detail });
    }
    throw new GatewayError("upstream_error", "The model server cannot be reached.", { detail, cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
