// Sends requests to a model server over HTTP: headers, time limits, and what an OpenAI `/models` list says.
import { BodyTooLongError, readAll } from "../base/bytes/body-source.ts";
import { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { Eventual } from "../base/later.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import type { EngineModel, EngineRequest, EngineResponse } from "../domain/models/engine.ts";
import { byOperation, type Operation } from "../domain/models/operation.ts";
import { Http1Client, originOf } from "../http1/client/client.ts";
import {
  ClientError,
  type ClientRequest,
  type ClientResponse,
  type HttpClient,
} from "../http1/client/client-contract.ts";
import type { HeaderFields } from "../http1/message.ts";
import { FetchClient } from "./fetch-client.ts";

/** `own`: Http1Client; `fetch`: what the runtime brings along. */
export type HttpClientKind = "own" | "fetch";

export interface HttpTargetOptions {
  /** The name that error details show. */
  name: string;
  /** Base URL to which `/chat/completions` and the like are appended; no trailing slash. */
  url: string;
  apiKey?: string | undefined;
  /** Path of a Unix domain socket to connect to instead of the URL's host. */
  unix?: string | undefined;
  /** Wait for the status line. */
  firstByteTimeoutMs: number;
  /** Longest silence in the middle of an answer. */
  idleTimeoutMs: number;
  /** Default `own`. */
  httpClient?: HttpClientKind | undefined;
}

/** A server with the connections to it, which are kept between requests: one for as long as it is known. */
export interface HttpTarget extends HttpTargetOptions {
  readonly client: HttpClient;
  /** Path of the base URL, without a slash at its end. */
  readonly basePath: string;
  readonly paths: Readonly<Record<Operation, string>>;
  /**
   * Headers of every request that asks for JSON, or for a stream: one object each, as the client makes a head of it
   * once.
   */
  readonly jsonHeaders: HeaderFields;
  readonly streamHeaders: HeaderFields;
}

export const maxListBytes = 8 * 1024 * 1024;

/** Throws a TypeError where the URL is none. */
export function httpTarget(options: HttpTargetOptions): HttpTarget {
  const url = new URL(options.url);
  const { unix } = options;
  const errors = (fault: unknown) => gatewayErrorOf(options, fault);
  const client =
    options.httpClient === "fetch"
      ? new FetchClient(url.origin, { unix, errors })
      : new Http1Client(originOf(url, unix), { errors });
  const basePath = trimSlashes(url.pathname);
  const headers = { ...requestHeaders(options), "content-type": "application/json" };
  return {
    ...options,
    client,
    basePath,
    paths: byOperation((path) => basePath + path),
    jsonHeaders: { ...headers, accept: "application/json" },
    streamHeaders: { ...headers, accept: "text/event-stream" },
  };
}

/**
 * POSTs the body. Nothing of the client's headers goes along, redirects are not followed (the credential would follow
 * them), and compression is not asked for (an event stream must not wait in a decoder).
 */
export function postJson(
  target: HttpTarget,
  request: EngineRequest,
  cancellation: Cancellation,
): Eventual<EngineResponse> {
  const { requestId, body, holder } = request;
  const path = target.paths[request.operation];
  const headers = request.stream ? target.streamHeaders : target.jsonHeaders;
  const sent: ClientRequest = { method: "POST", path, headers, requestId, body, holder };
  // Only these two headers, which are ours, of all that a client may have said of its trace.
  if (request.trace) sent.ownHeaders = { ...request.trace };
  return send(target, sent, cancellation);
}

/** GET /models. Rejects where the answer is not an OpenAI model list. */
export async function getModels(target: HttpTarget, signal: AbortSignal): Promise<EngineModel[]> {
  const { status, text } = await getText(target, `${target.basePath}/models`, maxListBytes, signal);
  if (status !== 200) {
    throw new GatewayError("upstream_error", `GET /models answered ${status}`, { detail: target.name });
  }
  if (text === undefined) throw new GatewayError("upstream_error", "GET /models answered too much");
  return parseModels(text);
}

/** `text`: of a 200; undefined where it is longer than `mostBytes`. `date`: by the server's clock, as it sent it. */
export async function getText(
  target: HttpTarget,
  path: string,
  mostBytes: number,
  signal: AbortSignal,
): Promise<{ status: number; date: string | null; text: string | undefined }> {
  signal.throwIfAborted();
  const cancellation = new Cancellation();
  const abort = () => cancellation.cancel(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    const response = await send(target, { method: "GET", path, headers: requestHeaders(target) }, cancellation);
    const { status } = response;
    const date = response.headers.get("date");
    if (status === 200) return { status, date, text: await readText(response, mostBytes, cancellation) };
    response.body.cancel();
    return { status, date, text: undefined };
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function readText(
  { body }: ClientResponse,
  mostBytes: number,
  cancellation: Cancellation,
): Promise<string | undefined> {
  try {
    return (await readAll(body, mostBytes, cancellation, () => {})).text;
  } catch (error) {
    if (error instanceof BodyTooLongError) return undefined;
    throw error;
  }
}

/** No control characters, as for models of nodes: PostgreSQL keeps no U+0000, and whatever is stored beside such a name would wait for ever. */
const namePattern = /^[^\p{Cc}\p{Cs}]+$/u;

/** Reads a model list, with the extensions of vLLM (`max_model_len`), LM Studio, and llama-server (`meta`). */
export function parseModels(text: string): EngineModel[] {
  const value: unknown = JSON.parse(text);
  const data = (value as { data?: unknown } | null)?.data;
  if (!Array.isArray(data)) throw new GatewayError("upstream_error", "GET /models answered no model list");
  const models: EngineModel[] = [];
  for (const entry of data as Record<string, unknown>[]) {
    const id = entry?.["id"];
    if (typeof id !== "string" || id.length > 256 || !namePattern.test(id)) continue;
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

function requestHeaders(target: HttpTargetOptions): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "headrace", "accept-encoding": "identity" };
  if (target.apiKey) headers["authorization"] = `Bearer ${target.apiKey}`;
  return headers;
}

function send(target: HttpTarget, request: ClientRequest, cancellation: Cancellation): Eventual<ClientResponse> {
  return target.client.send(request, target, cancellation);
}

/** An answer that breaks off has an error of its own, which the relay words; it is for the log only. */
function gatewayErrorOf(target: HttpTargetOptions, fault: unknown): unknown {
  if (!(fault instanceof ClientError)) return fault;
  const detail = `${target.name}: ${fault.message}`;
  if (fault.fault === "first_byte_timeout") {
    const seconds = Math.round(target.firstByteTimeoutMs / 1000);
    return new GatewayError("upstream_timeout", `The model server did not answer within ${seconds} s.`, { detail });
  }
  if (fault.fault === "idle_timeout") {
    return new GatewayError("upstream_timeout", "The model server stopped sending in the middle of the answer.", {
      detail,
    });
  }
  if (fault.answerBegan) return fault;
  return new GatewayError("upstream_error", "The model server cannot be reached.", { detail, cause: fault });
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
