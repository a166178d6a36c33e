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

/** The HTTP client for a model server: `own` is Http1Client, `fetch` is the client of the runtime. */
export type HttpClientKind = "own" | "fetch";

export interface HttpTargetOptions {
  /** The name of the server in error details. */
  name: string;
  /** The base URL to which `/chat/completions` and other paths are appended, without a slash at its end. */
  url: string;
  apiKey?: string | undefined;
  /** The form of requests to the server. Left out for the usual form. */
  speech?: UpstreamSpeech | undefined;
  /** The path of a Unix domain socket to connect to instead of the URL's host. */
  unix?: string | undefined;
  /** The longest wait for the status line. */
  firstByteTimeoutMs: number;
  /** The longest silence within an answer. */
  idleTimeoutMs: number;
  /** Default `own`. */
  httpClient?: HttpClientKind | undefined;
}

/**
 * A model server and its connections, which are kept between requests. There is one target for as long as the server is
 * known.
 */
export interface HttpTarget extends HttpTargetOptions {
  readonly client: HttpClient;
  readonly api: UpstreamApi;
  /** The path of the base URL, without a slash at its end. */
  readonly basePath: string;
  /** The base path without the API version at its end. Paths that do not belong to that API are below the root path. */
  readonly rootPath: string;
  /** The path of each operation, with its query. */
  readonly paths: Readonly<Record<Operation, string>>;
  readonly headers: Readonly<Record<Operation, RequestHeaders>>;
  /** The headers of Messages requests, by the version of the API that their body follows. */
  readonly messageHeaders: Readonly<Record<MessageVersion, RequestHeaders>>;
}

/**
 * The headers of every request for JSON and for a stream. Each is one object, because the client renders its head only
 * once.
 */
interface RequestHeaders {
  readonly json: HeaderFields;
  readonly stream: HeaderFields;
  readonly bytes: HeaderFields;
  /** The headers of a form. Its content type is added for each request. */
  readonly form: Omit<RequestHeaders, "form">;
}

/** Creates the target for a server. Throws a TypeError for an invalid URL. */
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
 * Returns the path of the base URL. Base URLs for Anthropic's API usually lack the `/v1` that the paths begin with
 * (ANTHROPIC_BASE_URL of Claude Code and the SDKs), so `/v1` is added if it is missing.
 */
function basePathOf({ pathname }: URL, api: UpstreamApi): string {
  const path = trimSlashes(pathname);
  return api !== "messages" || /\/v\d[^/]*$/.test(path) ? path : `${path}/v1`;
}

/** Returns the path of a server's model list, without the query of each request, which `getText` adds. */
export function modelsPath({ basePath }: HttpTarget): string {
  return `${basePath}/models`;
}

/** Returns the headers of a request for JSON or for a stream. */
export function headersOf(
  target: HttpTarget,
  { operation, messageHeaders }: Pick<EngineRequest, "operation" | "messageHeaders">,
): RequestHeaders {
  const isOfClient = operation === "message" && messageHeaders;
  return isOfClient ? target.messageHeaders[messageHeaders.version] : target.headers[operation];
}

/** Returns the headers that belong to this request only, such as a client's Messages headers. */
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
 * POSTs the body. Of the client's headers only those of Messages are passed on, and only to a Messages API. Redirects
 * are not followed, because the credential would follow them. Compression is not requested, because an event stream
 * must not wait in a decoder.
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
  /** The server's `Date` header, as it was sent. */
  date: string | null;
  /** The body as text. Undefined if it is too long or not wanted. */
  text: string | undefined;
}

/** `path`: without the query that the target adds to each. The text is that of a 200. */
export function getText(target: HttpTarget, path: string, maxBytes: number, signal: AbortSignal): Promise<TextAnswer> {
  const version = target.api === "messages" ? versionHeader(defaultMessageVersion) : {};
  const headers = { ...requestHeaders(target), ...version };
  const request: ClientRequest = { method: "GET", path: withQuery(path, target), headers };
  return ask(target, request, (status) => (status === 200 ? maxBytes : 0), signal);
}

/** Sends an operation with this JSON text. Returns the answer's text with any status. */
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

/** Returns the headers of every request that name the gateway and carry its credential for the server. */
export function requestHeaders({ apiKey, speech = usualSpeech }: HttpTargetOptions): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "headrace", "accept-encoding": "identity" };
  if (!apiKey) return headers;
  const header = speech.keyHeader ?? (speech.api === "messages" ? "x-api-key" : "authorization");
  headers[header] = header === "authorization" ? `Bearer ${apiKey}` : apiKey;
  return headers;
}

/** Returns a path with the query parameters of every request to the server. */
export function withQuery(path: string, { speech = usualSpeech }: HttpTargetOptions): string {
  const query = new URLSearchParams(speech.query).toString();
  return query === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

function send(target: HttpTarget, request: ClientRequest, cancellation: Cancellation): MaybePromise<ClientResponse> {
  return target.client.send(request, target, cancellation);
}

/** Reports whether the server closed its port, or the connection, before an answer began. */
export function isClosedEarly(error: unknown): boolean {
  if (!(error instanceof GatewayError && error.cause instanceof ClientError)) return false;
  const { fault, answerBegan } = error.cause;
  return fault === "connect" || (fault === "broken" && !answerBegan);
}

/**
 * Turns a client fault into an error for clients. An answer that breaks off keeps its own error, which is for the log
 * only; the relay words it for clients.
 */
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
