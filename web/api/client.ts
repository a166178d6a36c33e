// Calls the server's public HTTP API, as any script could: with the session cookie, for one account and environment.
import { noteServerTime } from "./server-time.ts";

export type Environment = "live" | "test" | "dev";
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

interface CallOptions {
  query?: Query | undefined;
  /** The request body, sent as JSON. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
  /** If true, an ended session makes the call fail, and the user is not asked to sign in again. */
  isOnce?: boolean;
}

/** An error answer of the server, or the reason why no answer came (`status` 0). */
export class ApiFailure extends Error {
  readonly status: number;
  /** An error code of the API; `network` if the server was not reached, `not_a_number` if nothing was sent. */
  readonly code: string;
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;

  constructor(failure: {
    status: number;
    code: string;
    message: string;
    requestId?: string | null;
    retryAfter?: number;
  }) {
    super(failure.message);
    this.status = failure.status;
    this.code = failure.code;
    this.requestId = failure.requestId ?? null;
    this.retryAfterSeconds = failure.retryAfter ?? null;
  }
}

interface Bearing {
  csrfToken: string | null;
  environment: Environment | null;
  /** The account is sent with each call, because another tab may have switched the session to another account. */
  accountId: string | null;
}

/** The values that every call sends as headers; set once the session is known. */
const bearing: Bearing = { csrfToken: null, environment: null, accountId: null };

export function bear(values: Partial<Bearing>): void {
  Object.assign(bearing, values);
}

/**
 * Called when the session has ended. Returns a promise that resolves once the same person has signed in again, or
 * undefined if the page has nothing to lose.
 */
type Hold = () => Promise<void> | undefined;

let hold: Hold | undefined;

/** Registers the handler that runs when the session ends; returns a function that unregisters `held`. */
export function onSessionEnd(held: Hold): () => void {
  hold = held;
  return () => {
    if (hold === held) hold = undefined;
  };
}

/**
 * Rejects with ApiFailure. If the session has ended, the page waits until the same person signs in again and then
 * repeats the call. If nothing on the page would be lost, the browser goes to the sign-in page, which leads back here.
 */
export async function call<Answer>(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
  const response = await send(method, path, options);
  return response.status === 204 ? (undefined as Answer) : ((await response.json()) as Answer);
}

/** An answer with its entity tag. */
export interface Tagged<Answer> {
  tag: string | null;
  answer: Answer;
}

/** Returns `before` itself if the server answers that nothing has changed. */
export async function callAgain<Answer>(
  path: string,
  before: Tagged<Answer> | undefined,
  options: CallOptions,
): Promise<Tagged<Answer>> {
  const headers = before?.tag ? { "if-none-match": before.tag } : {};
  const response = await send("GET", path, { ...options, headers });
  if (response.status === 304 && before) return before;
  return { tag: response.headers.get("etag"), answer: (await response.json()) as Answer };
}

/** Sends a request like `call`, but returns the response with its body unread, for streams and files. */
export async function send(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  try {
    return await sendOnce(method, path, options);
  } catch (error) {
    if (options.isOnce || !(error instanceof ApiFailure) || !isSessionOver(error)) throw error;
    const held = hold?.();
    if (!held) {
      leaveForSignIn();
      throw error;
    }
    await held;
    // The refused call had no effect, so it is safe to repeat with the new session's token.
    return await sendOnce(method, path, options);
  }
}

async function sendOnce(method: string, path: string, options: CallOptions): Promise<Response> {
  const { query = {}, body, headers, signal } = options;
  const response = await fetch(withQuery(path, query), {
    method,
    headers: {
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(bearing.environment === null ? {} : { "headrace-environment": bearing.environment }),
      ...(bearing.accountId === null ? {} : { "headrace-account": bearing.accountId }),
      ...(method === "GET" || bearing.csrfToken === null ? {} : { "x-csrf-token": bearing.csrfToken }),
      ...headers,
    },
    credentials: "same-origin",
    ...(body === undefined ? {} : { body: jsonOf(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure({
      status: 0,
      code: "network",
      message: "The server cannot be reached. Check that it is running and that you are online, then try again.",
    });
  });
  noteServerTime(response.headers.get("date"));
  // The server answers 304 (unchanged) only if the caller sent an entity tag.
  if (response.ok || response.status === 304) return response;
  throw await failureOf(response);
}

/** Refuses NaN and infinite numbers: JSON would write null, which often means "no limit". */
function jsonOf(body: unknown): string {
  return JSON.stringify(body, (field, value: unknown) => {
    if (typeof value !== "number" || Number.isFinite(value)) return value;
    throw new ApiFailure({ status: 400, code: "not_a_number", message: `${field}: is not a number.` });
  });
}

async function failureOf(response: Response): Promise<ApiFailure> {
  const answer = (await response.json().catch(() => undefined)) as
    | { error?: { message?: string; code?: string } }
    | undefined;
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiFailure({
    status: response.status,
    code: answer?.error?.code ?? "internal_error",
    message: answer?.error?.message ?? `The server answered with status ${response.status}.`,
    requestId: response.headers.get("x-request-id"),
    ...(Number.isFinite(retryAfter) ? { retryAfter } : {}),
  });
}

/** Turns any thrown value into a failure that a page can show. `what` is a phrase such as "The playground failed". */
export function asFailure(error: unknown, what: string): ApiFailure {
  if (error instanceof ApiFailure) return error;
  return new ApiFailure({ status: 0, code: "internal_error", message: `${what}: ${String(error)}` });
}

export function isSessionOver({ code }: ApiFailure): boolean {
  return code === "invalid_api_key";
}

function leaveForSignIn(): void {
  const { pathname, search } = window.location;
  window.location.assign(signInPath(pathname + search));
}

/** Returns the address of the sign-in page that leads on to `next`. */
export function signInPath(next: string): string {
  return `/sign-in?next=${encodeURIComponent(next)}`;
}

/** Joins lists with commas and leaves out values that are null, undefined or empty. */
function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) {
      if (value.length > 0) parameters.set(name, value.join(","));
    } else parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
}
