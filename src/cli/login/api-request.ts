// Sends requests of commands to the HTTP API and explains what goes wrong.
import { z } from "zod";
import { CliError, printable } from "../terminal/terminal.ts";
import type { Connection } from "./connection.ts";

export interface ApiRequest {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as a form, in place of `body`. */
  form?: Readonly<Record<string, string>>;
  accept?: string;
  /** Beside those that are always sent. */
  headers?: Readonly<Record<string, string>>;
  /** Bounds the whole exchange; null: no bound, for answers that take as long as they take. */
  timeoutMs?: number | null;
}

/** The server answered, and refused. */
export class ApiError extends CliError {
  readonly status: number;
  /** The API's error code; undefined where the answer is none of this API's. */
  readonly code: string | undefined;
  /** In the API's own words; undefined with `code`. */
  readonly reason: string | undefined;

  constructor(message: string, status: number, told?: { code?: string | undefined; message: string }) {
    super(message);
    this.status = status;
    this.code = told?.code;
    this.reason = told?.message;
  }
}

const requestTimeoutMs = 30_000;
const pageSize = 100;

/** Rejects with a CliError where no answer comes, or with the reason of `signal`. Whatever the status. */
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
  // Before its end, as when the server was given another address: a new one is good where the login still is.
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
      // Its type is set with it.
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      // The key must not follow a redirect to somewhere else.
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

/** The text of a successful answer. Rejects with an ApiError for any other, and as `send` does. */
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

/** The JSON of a successful answer; rejects as `requestText` does. */
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

/** The entries of all pages of a list, as the API gives them. `path` may have a query of its own. */
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
    // A server that names the same page again would keep us here for ever.
    if (!has_more || data.length === 0 || !last_id || last_id === after) return entries;
    after = last_id;
  }
}

// Unchecked entries: --json passes on what this version does not know.
const wholeList = z.object({ data: z.array(z.unknown()) });

/** The entries of a list that comes in one answer, as the API gives them. */
export async function requestWholeList(
  connection: Connection,
  path: string,
  what: string,
  signal: AbortSignal,
): Promise<unknown[]> {
  return understood(wholeList, await requestJson(connection, path, signal), connection, what).data;
}

/** What the schema reads of an answer; throws a CliError that says what was expected. */
export function understood<Schema extends z.ZodType>(
  schema: Schema,
  json: unknown,
  { baseUrl }: Pick<Connection, "baseUrl">,
  what: string,
): z.output<Schema> {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const place = result.error.issues[0]?.path.join(".");
  throw new CliError(
    `${baseUrl} answered with JSON that is no ${what}${place ? ` (at ${printable(place)})` : ""}. Is it a Headrace, of this version?`,
  );
}

/** The body as text; a connection that breaks meanwhile is told as one. */
export async function bodyText(response: Response, baseUrl: string, signal: AbortSignal): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(error, baseUrl);
  }
}

/** The failure that a response with an error status tells of. */
export async function failure(response: Response, connection: Connection, signal: AbortSignal): Promise<ApiError> {
  return refusal(response.status, await bodyText(response, connection.baseUrl, signal), connection);
}

const apiError = z.object({ error: z.object({ message: z.string(), code: z.string().optional().catch(undefined) }) });

function refusal(status: number, body: string, { baseUrl, keySource, login }: Connection): ApiError {
  const told = apiError.safeParse(parseJson(body)).data?.error;
  if (status === 401) {
    const message = login
      ? `${baseUrl} refused ${keySource} (401). Sign in again: headrace login --base-url ${baseUrl}`
      : `${baseUrl} refused the API key from ${keySource} (401). Is it of this server, and neither expired nor revoked?`;
    return new ApiError(message, status, told);
  }
  if (status >= 300 && status < 400) {
    const message = `${baseUrl} redirects elsewhere (${status}). Give the final address: redirects are not followed.`;
    return new ApiError(message, status, told);
  }
  if (told) {
    // Whoever comes here first has the first key, which does not operate.
    const hint = told.message.endsWith(": admin:manage")
      ? ". It takes an operator's key: on the server's machine, HEADRACE_API_KEY=$(headrace operator-key --quiet)"
      : "";
    return new ApiError(`${baseUrl}: ${printable(told.message)} (${status})${hint}`, status, told);
  }
  return notThisApi(status, baseUrl);
}

function notThisApi(status: number, baseUrl: string): ApiError {
  const hint = /\/v1$/.test(baseUrl) ? "Is something else listening there?" : "The base URL of a Headrace ends in /v1.";
  const message = `${baseUrl} answered ${status} with something that is no answer of this API. ${hint}`;
  return new ApiError(message, status);
}

/** No status came, or the answer broke off. */
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
