// Sends requests to a model server over HTTP: paths, headers and time limits.
import { BodyTooLongError, readAll } from "../base/bytes/body-source.ts";
import { Cancellation } from "../base/cancellation.ts";
import type { MaybePromise } from "../base/deferred.ts";
import { GatewayError } from "../base/errors.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import { EngineFault, type EngineRequest, type EngineResponse } from "../domain/models/engine.ts";
import {
  defaultMessageVersion,
  type MessageHeaders,
  type MessageVersion,
  messageVersions,
} from "../domain/models/message-headers.ts";
import { byOperation, isUnversioned, type Operation, operationPaths } from "../domain/models/operation.ts";
import { type UpstreamApi, type UpstreamSpeech, usualSpeech } from "../domain/models/upstream-speech.ts";
import type { AttemptCause } from "../domain/usage/attempt-health.ts";
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
  /** The name of the model server, for error details. */
  name: string;
  /** The base URL to which `/chat/completions` and other paths are appended, without a slash at its end. */
  url: string;
  apiKey?: string | undefined;
  /** The API, key header and query of requests to the server. Default: those of OpenAI. */
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

/** A model server and its connection pool. There is one target for each known server. */
export interface HttpTarget extends HttpTargetOptions {
  readonly client: HttpClient;
  readonly api: UpstreamApi;
  /** The path of the base URL, without a slash at its end. */
  readonly basePath: string;
  /** The base path without the API version at its end, for paths such as `/metrics`. */
  readonly rootPath: string;
  /** The path and query of each operation. */
  readonly paths: Readonly<Record<Operation, string>>;
  readonly headers: Readonly<Record<Operation, RequestHeaders>>;
  /** The headers of Messages requests, by API version. */
  readonly messageHeaders: Readonly<Record<MessageVersion, RequestHeaders>>;
}

/**
 * The headers of every request, by the kind of answer. Each object is reused, because the client caches its
 * serialized form.
 */
interface RequestHeaders {
  readonly json: HeaderFields;
  readonly stream: HeaderFields;
  readonly bytes: HeaderFields;
  /** The headers of a multipart form without its content type, which differs in each request. */
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
 * Returns the path of the base URL. Adds `/v1` for a Messages API if it is missing, as users copy
 * ANTHROPIC_BASE_URL, which lacks it.
 */
function basePathOf({ pathname }: URL, api: UpstreamApi): string {
  const path = trimSlashes(pathname);
  return api !== "messages" || /\/v\d[^/]*$/.test(path) ? path : `${path}/v1`;
}

/** Returns the path of a server's model list, without the configured query parameters. */
export function modelsPath({ basePath }: HttpTarget): string {
  return `${basePath}/models`;
}

/** Returns the fixed headers for an operation. */
export function headersOf(
  target: HttpTarget,
  { operation, messageHeaders }: Pick<EngineRequest, "operation" | "messageHeaders">,
): RequestHeaders {
  const isOfClient = operation === "message" && messageHeaders;
  return isOfClient ? target.messageHeaders[messageHeaders.version] : target.headers[operation];
}

/** Returns the headers that only this request has, such as trace headers and `anthropic-beta`. */
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
 * POSTs a request. Of the client's headers, only those of the Messages API are passed on, and only to that API.
 * Redirects are not followed, because they would get the credential. No compression is requested, because a decoder
 * would delay events of a stream.
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
  /** The body as text. Undefined if the body is too long, or was not read because of the status. */
  text: string | undefined;
}

/** Sends a GET. Adds the configured query parameters to `path`. Returns the body only if the status is 200. */
export function getText(target: HttpTarget, path: string, maxBytes: number, signal: AbortSignal): Promise<TextAnswer> {
  const version = target.api === "messages" ? versionHeader(defaultMessageVersion) : {};
  const headers = { ...requestHeaders(target), ...version };
  const request: ClientRequest = { method: "GET", path: withQuery(path, target), headers };
  return ask(target, request, (status) => (status === 200 ? maxBytes : 0), signal);
}

/** POSTs JSON text. Returns the answer's text, whatever its status. */
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

/** Returns the headers that every request to the server has: the user agent and the credential. */
export function requestHeaders({ apiKey, speech = usualSpeech }: HttpTargetOptions): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "headrace", "accept-encoding": "identity" };
  if (!apiKey) return headers;
  const header = speech.keyHeader ?? (speech.api === "messages" ? "x-api-key" : "authorization");
  headers[header] = header === "authorization" ? `Bearer ${apiKey}` : apiKey;
  return headers;
}

/** Returns the path with the query parameters that the server needs in every request. */
export function withQuery(path: string, { speech = usualSpeech }: HttpTargetOptions): string {
  const query = new URLSearchParams(speech.query).toString();
  return query === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

function send(target: HttpTarget, request: ClientRequest, cancellation: Cancellation): MaybePromise<ClientResponse> {
  return target.client.send(request, target, cancellation);
}

/** Reports whether the server refused or closed the connection before an answer began. */
export function isClosedEarly(error: unknown): boolean {
  if (!(error instanceof GatewayError && error.cause instanceof ClientError)) return false;
  const { fault, answerBegan } = error.cause;
  return fault === "connect" || (fault === "broken" && !answerBegan);
}

/**
 * Converts a fault of the HTTP client into an error for clients. The error of an answer that breaks off is kept,
 * because it is only logged.
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
  return new EngineFault(causeOf(fault), "The model server cannot be reached.", { detail, cause: fault });
}

/** Returns why no answer began. The runtime's errors have the codes of c-ares, of OpenSSL and of its HTTP parser. */
function causeOf({ fault, cause }: ClientError): AttemptCause {
  if (fault === "malformed") return "not_http";
  const code = String((cause as { code?: unknown } | undefined)?.code);
  if (/^(?:DNS_)?(?:ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/.test(code)) return "dns";
  if (/CERT|SSL|TLS|^EPROTO$|^UNABLE_TO_/.test(code)) return "tls";
  return code === "Malformed_HTTP_Response" ? "not_http" : "connection";
}
