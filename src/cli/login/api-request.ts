// Sends requests of commands to the HTTP API and explains errors.
import { z } from "zod";
import { CliError, printable } from "../terminal/terminal.ts";
import type { Connection } from "./connection.ts";

export interface ApiRequest {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The request body, sent as JSON. */
  body?: unknown;
  /** Fields of a form, sent instead of `body`. */
  form?: Readonly<Record<string, string>>;
  accept?: string;
  /** Additional headers. */
  headers?: Readonly<Record<string, string>>;
  /** Time limit of the whole exchange. Null means no limit, for answers that may take any time. */
  timeoutMs?: number | null;
}

/** An error answer of the server. */
export class ApiError extends CliError {
  readonly status: number;
  /** The API's error code. Undefined if the answer is not from this API. */
  readonly code: string | undefined;
  /** The API's own message. Undefined together with `code`. */
  readonly reason: string | undefined;

  constructor(message: string, status: number, refused?: { code?: string | undefined; message: string }) {
    super(message);
    this.status = status;
    this.code = refused?.code;
    this.reason = refused?.message;
  }
}

const requestTimeoutMs = 30_000;
const pageSize = 100;

/**
 * Returns the response with any status. Rejects with a CliError if no response arrives, or with the reason of `signal`.
 */
export async function send(
  connection: Pick<Connection, "baseUrl"> & Partial<Connection>,
  path: string,
  signal: AbortSignal,
  request: ApiRequest = {},
): Promise<Response> {
  const { baseUrl, apiKey, login } = connection;
  const url = `${baseUrl}${path}`;
  if (login === undefined) return sendWith(apiKey, url, baseUrl, signal, request);
  const token = await login.token(signal);
  const response = await sendWith(token, url, baseUrl, signal, request);
  if (response.status !== 401) return response;
  // The server may reject a token before its expiry, for example after its address changed. If the login still exists,
  // a renewed token works.
  await response.body?.cancel();
  return sendWith(await login.tokenAfter(token, signal), url, baseUrl, signal, request);
}

async function sendWith(
  credential: string | undefined,
  url: string,
  baseUrl: string,
  signal: AbortSignal,
  { method = "GET", body, form, accept = "application/json", headers, timeoutMs = requestTimeoutMs }: ApiRequest,
): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      headers: {
        ...headers,
        accept,
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // The content type of a form is set by `fetch`.
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      // A redirect is not followed, because the key must not go to another server.
      redirect: "manual",
      signal: timeoutMs === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      // Bun's own limit of five minutes would end a long answer.
      timeout: false,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(error, baseUrl, timeoutMs);
  }
}

/**
 * Returns the text of a successful response. Rejects with an ApiError for any other status, and with a CliError if no
 * response arrives.
 */
export async function requestText(
  connection: Connection,
  path: string,
  signal: AbortSignal,
  request: ApiRequest = {},
): Promise<string> {
  const response = await send(connection, path, signal, request);
  const text = await bodyText(response, connection.baseUrl, signal);
  if (response.ok) return text;
  throw refusal(response.status, text, connection);
}

/**
 * Returns the JSON of a successful response. Rejects with an ApiError for any other status, and with a CliError if no
 * response arrives.
 */
export async function requestJson(
  connection: Connection,
  path: string,
  signal: AbortSignal,
  request: ApiRequest = {},
): Promise<unknown> {
  const json = parseJson(await requestText(connection, path, signal, request));
  if (json === undefined) throw notThisApi(200, connection.baseUrl);
  return json;
}

const page = z.object({ data: z.array(z.unknown()), last_id: z.string().nullish(), has_more: z.boolean().optional() });

/** Returns the entries of all pages of a list, as the API returns them. `path` may have a query. */
export async function requestList(connection: Connection, path: string, signal: AbortSignal): Promise<unknown[]> {
  const first = path.includes("?") ? "&" : "?";
  const entries: unknown[] = [];
  for (let after = ""; ; ) {
    const query = `limit=${pageSize}${after === "" ? "" : `&after=${encodeURIComponent(after)}`}`;
    const { data, last_id, has_more } = understood(
      page,
      await requestJson(connection, `${path}${first}${query}`, signal),
      connection,
      "list",
    );
    entries.push(...data);
    // A server that names the same page again would cause an endless loop.
    if (!has_more || data.length === 0 || !last_id || last_id === after) return entries;
    after = last_id;
  }
}

// Entries are not checked, since --json passes on fields unknown to this version.
const wholeList = z.object({ data: z.array(z.unknown()) });

/** Returns the entries of a list in one response, as the API returns them. */
export async function requestWholeList(
  connection: Connection,
  path: string,
  what: string,
  signal: AbortSignal,
): Promise<unknown[]> {
  return understood(wholeList, await requestJson(connection, path, signal), connection, what).data;
}

/** Parses a response with the schema. Throws a CliError that says what was expected. */
export function understood<Schema extends z.ZodType>(
  schema: Schema,
  json: unknown,
  { baseUrl }: Pick<Connection, "baseUrl">,
  what: string,
): z.output<Schema> {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const path = result.error.issues[0]?.path.join(".");
  throw new CliError(
    `${baseUrl} answered with JSON that is no ${what}${path ? ` (at ${printable(path)})` : ""}. Is it a Headrace, of this version?`,
  );
}

/** Returns the body as text. Throws a CliError if the connection breaks. */
export async function bodyText(response: Response, baseUrl: string, signal: AbortSignal): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(error, baseUrl);
  }
}

/** Returns the error that a response with an error status describes. */
export async function failure(response: Response, connection: Connection, signal: AbortSignal): Promise<ApiError> {
  return refusal(response.status, await bodyText(response, connection.baseUrl, signal), connection);
}

const apiError = z.object({ error: z.object({ message: z.string(), code: z.string().optional().catch(undefined) }) });

function refusal(status: number, body: string, { baseUrl, keySource, login }: Connection): ApiError {
  const refused = apiError.safeParse(parseJson(body)).data?.error;
  if (status === 401) {
    const message = login
      ? `${baseUrl} refused ${keySource} (401). Sign in again: headrace login --base-url ${baseUrl}`
      : `${baseUrl} refused the API key from ${keySource} (401). Is it of this server, and neither expired nor revoked?`;
    return new ApiError(message, status, refused);
  }
  if (status >= 300 && status < 400) {
    const message = `${baseUrl} redirects elsewhere (${status}). Give the final address: redirects are not followed.`;
    return new ApiError(message, status, refused);
  }
  if (refused) {
    // New users have only the first key, which lacks the operator scopes. The hint tells them how to get an operator's
    // key.
    const hint = refused.message.endsWith(": admin:manage")
      ? ". It takes an operator's key: on the server's machine, HEADRACE_API_KEY=$(headrace operator-key --quiet)"
      : "";
    return new ApiError(`${baseUrl}: ${printable(refused.message)} (${status})${hint}`, status, refused);
  }
  return notThisApi(status, baseUrl);
}

function notThisApi(status: number, baseUrl: string): ApiError {
  const hint = /\/v1$/.test(baseUrl) ? "Is something else listening there?" : "The base URL of a Headrace ends in /v1.";
  const message = `${baseUrl} answered ${status} with something that is no answer of this API. ${hint}`;
  return new ApiError(message, status);
}

/** Returns the error for a request without a response, or whose response broke off. */
export function unreachable(error: unknown, baseUrl: string, timeoutMs: number | null = requestTimeoutMs): CliError {
  if (error instanceof Error && error.name === "TimeoutError") {
    return new CliError(`${baseUrl} did not answer within ${(timeoutMs ?? requestTimeoutMs) / 1000} s.`);
  }
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return new CliError(`No server answers at ${baseUrl}${code}. Start it with: headrace serve`);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
