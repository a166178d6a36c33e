// Sends requests to a model server over HTTP: paths, headers and time limits.
import { BodyTooLongError, readAll } from "../base/bytes/body-source.ts";
import { Cancellation } from "../base/cancellation.ts";
import type { MaybePromise } from "../base/deferred.ts";
import { GatewayError } from "../base/errors.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import type { EngineRequest, EngineResponse } from "../domain/models/engine.ts";
import {
  defaultMessageVersion,
  type MessageHeaders,
  type MessageVersion,
  messageVersions,
} from "../domain/models/message-headers.ts";
import { byOperation, isUnversioned, type Operation, operationPaths } from "../domain/models/operation.ts";
import { type UpstreamApi, type UpstreamSpeech, usualSpeech } from "../domain/models/upstream-speech.ts";
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
  /** Left out: as most servers are spoken to. */
  speech?: UpstreamSpeech | undefined;
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
  readonly api: UpstreamApi;
  /** Path of the base URL, without a slash at its end. */
  readonly basePath: string;
  /** The same without the version of the API at its end: what is no part of that API stands there. */
  readonly rootPath: string;
  /** With their query. */
  readonly paths: Readonly<Record<Operation, string>>;
  readonly headers: Readonly<Record<Operation, RequestHeaders>>;
  /** Headers of requests of Messages, by the version that their body is of. */
  readonly messageHeaders: Readonly<Record<MessageVersion, RequestHeaders>>;
}

/**
 * Headers of every request that asks for JSON, or for a stream: one object each, as the client makes a head of it once.
 */
interface RequestHeaders {
  readonly json: HeaderFields;
  readonly stream: HeaderFields;
  readonly bytes: HeaderFields;
  /** Those of a form, whose own type is told with each. */
  readonly form: Omit<RequestHeaders, "form">;
}

/** Throws a TypeError where the URL is none. */
export function httpTarget(options: HttpTargetOptions): HttpTarget {
  const url = new URL(options.url);
  const { unix } = options;
  const errors = (fault: unknown) => gatewayErrorOf(options, fault);
  const client =
    options.httpClient === "fetch"
      ? new FetchClient(url.origin, { unix, errors })
      : new Http1Client(originOf(url, unix), { errors });
  const { api } = options.speech ?? usualSpeech;
  const basePath = basePathOf(url, api);
  const rootPath = basePath.replace(/\/v1$/, "");
  const usual = headersFor(requestHeaders(options));
  const messageHeaders = Object.fromEntries(
    messageVersions.map((version) => [version, headersFor({ ...requestHeaders(options), ...versionHeader(version) })]),
  ) as Record<MessageVersion, RequestHeaders>;
  return {
    ...options,
    client,
    api,
    basePath,
    rootPath,
    paths: byOperation((path, operation) =>
      withQuery((isUnversioned(operation) ? rootPath : basePath) + path, options),
    ),
    headers: byOperation((path) => (path === operationPaths.message ? messageHeaders[defaultMessageVersion] : usual)),
    messageHeaders,
  };
}

function headersFor(own: HeaderFields): RequestHeaders {
  return { ...byAnswer({ ...own, "content-type": "application/json" }), form: byAnswer(own) };
}

function byAnswer(headers: HeaderFields): RequestHeaders["form"] {
  return {
    json: { ...headers, accept: "application/json" },
    stream: { ...headers, accept: "text/event-stream" },
    bytes: { ...headers, accept: "*/*" },
  };
}

/**
 * Base URLs of servers with Anthropic's API are commonly given without the `/v1` that the paths begin with
 * (ANTHROPIC_BASE_URL of Claude Code and the SDKs), so it may be left out of them.
 */
function basePathOf({ pathname }: URL, api: UpstreamApi): string {
  const path = trimSlashes(pathname);
  return api !== "messages" || /\/v\d[^/]*$/.test(path) ? path : `${path}/v1`;
}

/** Where a server lists its models; without the query of each request, which `getText` adds. */
export function modelsPath({ basePath }: HttpTarget): string {
  return `${basePath}/models`;
}

/** Headers of a request for JSON, or for a stream. */
export function headersOf(
  target: HttpTarget,
  { operation, messageHeaders }: Pick<EngineRequest, "operation" | "messageHeaders">,
): RequestHeaders {
  const isOfClient = operation === "message" && messageHeaders;
  return isOfClient ? target.messageHeaders[messageHeaders.version] : target.headers[operation];
}

/** Those of this request alone. */
export function ownHeadersOf({
  operation,
  messageHeaders,
  trace,
  form,
}: Pick<EngineRequest, "operation" | "messageHeaders" | "trace" | "form">): HeaderFields | undefined {
  if (form) return { ...trace, "content-type": form.contentType };
  const betas = operation === "message" ? messageHeaders?.betas : undefined;
  if (betas === undefined) return trace && { ...trace };
  return { ...trace, "anthropic-beta": betas };
}

/**
 * POSTs the body. Of the client's headers those of Messages alone go along, and only there; redirects are not followed (the
 * credential would follow them), and compression is not asked for (an event stream must not wait in a decoder).
 */
export function postJson(
  target: HttpTarget,
  request: EngineRequest,
  cancellation: Cancellation,
): MaybePromise<EngineResponse> {
  const { requestId, operation, body, form, memoryAccount } = request;
  const path = target.paths[operation];
  const known = headersOf(target, request);
  const { json, stream, bytes } = form ? known.form : known;
  const headers = request.stream ? stream : request.takesBytes ? bytes : json;
  const sent: ClientRequest = { method: "POST", path, headers, requestId, memoryAccount };
  if (form) sent.content = form;
  else sent.body = body;
  const ownHeaders = ownHeadersOf(request);
  if (ownHeaders) sent.ownHeaders = ownHeaders;
  return send(target, sent, cancellation);
}

interface TextAnswer {
  status: number;
  /** By the server's clock, as it sent it. */
  date: string | null;
  /** Undefined where it is longer than it may be, or not wanted. */
  text: string | undefined;
}

/** `path`: without the query that the target adds to each. The text is that of a 200. */
export function getText(target: HttpTarget, path: string, maxBytes: number, signal: AbortSignal): Promise<TextAnswer> {
  const version = target.api === "messages" ? versionHeader(defaultMessageVersion) : {};
  const headers = { ...requestHeaders(target), ...version };
  const request: ClientRequest = { method: "GET", path: withQuery(path, target), headers };
  return ask(target, request, (status) => (status === 200 ? maxBytes : 0), signal);
}

/** Asks for an operation with this JSON text. The text of the answer is there whatever the status is. */
export function postText(
  target: HttpTarget,
  operation: Operation,
  body: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<TextAnswer> {
  const headers = target.headers[operation].json;
  const request: ClientRequest = { method: "POST", path: target.paths[operation], headers, body };
  return ask(target, request, () => maxBytes, signal);
}

async function ask(
  target: HttpTarget,
  request: ClientRequest,
  maxBytesOf: (status: number) => number,
  signal: AbortSignal,
): Promise<TextAnswer> {
  signal.throwIfAborted();
  const cancellation = new Cancellation();
  const abort = () => cancellation.cancel(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    const response = await send(target, request, cancellation);
    const { status } = response;
    const date = response.headers.get("date");
    const maxBytes = maxBytesOf(status);
    if (maxBytes > 0) return { status, date, text: await readText(response, maxBytes, cancellation) };
    response.body.cancel();
    return { status, date, text: undefined };
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function readText(
  { body }: ClientResponse,
  maxBytes: number,
  cancellation: Cancellation,
): Promise<string | undefined> {
  try {
    return (await readAll(body, maxBytes, cancellation, () => {})).text;
  } catch (error) {
    if (error instanceof BodyTooLongError) return undefined;
    throw error;
  }
}

function versionHeader(version: MessageHeaders["version"]) {
  return { "anthropic-version": version };
}

/** Those of every request that name the gateway, and its credential for the server. */
export function requestHeaders({ apiKey, speech = usualSpeech }: HttpTargetOptions): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "headrace", "accept-encoding": "identity" };
  if (!apiKey) return headers;
  const header = speech.keyHeader ?? (speech.api === "messages" ? "x-api-key" : "authorization");
  headers[header] = header === "authorization" ? `Bearer ${apiKey}` : apiKey;
  return headers;
}

/** A path with the parameters that every request to the server has. */
export function withQuery(path: string, { speech = usualSpeech }: HttpTargetOptions): string {
  const query = new URLSearchParams(speech.query).toString();
  return query === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

function send(target: HttpTarget, request: ClientRequest, cancellation: Cancellation): MaybePromise<ClientResponse> {
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
