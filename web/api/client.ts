// Speaks to the server's public HTTP API, as any script could: by the session's cookie, for one account and environment.
import { noteServerTime } from "./server-time.ts";

export type Environment = "live" | "test" | "dev";
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

interface CallOptions {
  query?: Query | undefined;
  /** Sent as JSON. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
  /** Where the session has ended that is told, and nobody is asked to sign in. */
  isOnce?: boolean;
}

/** What the server said instead of an answer, or why there was none (`status` 0). */
export class ApiFailure extends Error {
  readonly status: number;
  /** A code of the table of errors; `network` where the server was not reached, `not_a_number` where it was not asked. */
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
  /** Said with each call: another tab may have chosen another account for the session since. */
  accountId: string | null;
}

/** Set once the session is known; every call bears them. */
const bearing: Bearing = { csrfToken: null, environment: null, accountId: null };

export function bear(values: Partial<Bearing>): void {
  Object.assign(bearing, values);
}

/** What holds the page until the same person is signed in again; undefined where there is nothing on it to be lost. */
type Hold = () => Promise<void> | undefined;

let hold: Hold | undefined;

/** While somebody is signed in; gives what ends that. */
export function onSessionEnd(held: Hold): () => void {
  hold = held;
  return () => {
    if (hold === held) hold = undefined;
  };
}

/**
 * Rejects with ApiFailure. Where the session has ended, the page waits until the same person is signed in again, and then it is
 * asked once more; where nothing on the page would be lost, it goes to the sign-in page, which leads back here.
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

/** `before`, itself, where the server says that it is still the same. */
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

/** The answer as it comes, for streams and files. */
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
    // It was refused and so has done nothing; it goes with the token of the new session.
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
  // What is the same as the caller has already, which is only told to who said what that is.
  if (response.ok || response.status === 304) return response;
  throw await failureOf(response);
}

/** JSON would have null, which mostly means no limit, in place of what is no number. */
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

/** Whatever was thrown, as a failure that a page can show. `what`: "The playground failed". */
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

/** The sign-in page that leads on to `next`. */
export function signInPath(next: string): string {
  return `/sign-in?next=${encodeURIComponent(next)}`;
}

/** Lists are joined by commas; what is null, undefined or empty is left out. */
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
