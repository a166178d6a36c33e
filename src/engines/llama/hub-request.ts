// Sends a GET request to the model hub, with deadlines. Follows redirects itself, so that other hosts never get
// the token.
import { SetupError } from "./setup-error.ts";

/** The deadlines and waits of requests to the hub, in milliseconds. */
export interface HubTiming {
  /** The longest wait from the request to the response headers, for each hop. */
  firstByteTimeoutMs: number;
  /** The longest silence within a body. */
  stallTimeoutMs: number;
  /** The delays before the second, third, … attempt. After the last, a download without progress fails. */
  retryDelaysMs: readonly number[];
}

export const defaultHubTiming: HubTiming = {
  firstByteTimeoutMs: 30_000,
  stallTimeoutMs: 60_000,
  retryDelaysMs: [1_000, 2_000, 4_000, 8_000, 15_000],
};

export interface Hub {
  /** The address without a slash at its end, e.g. `https://huggingface.co`. */
  endpoint: string;
  /** The token for gated and private repositories. It is sent only to the endpoint's own origin. */
  token: string | undefined;
  timing: HubTiming;
}

/** A response of the hub. Reading its body fails if no data arrives for `stallTimeoutMs`. */
export interface HubResponse {
  status: number;
  headers: Headers;
  /** The host that sent the response, for messages. The whole address may contain a signature. */
  host: string;
  /** Reads the body in pieces. Rejects with a transient SetupError if nothing arrives for `stallTimeoutMs`. */
  chunks(): AsyncGenerator<Uint8Array, void>;
  /** Drops the connection. */
  discard(): void;
}

const maxRedirects = 10;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a GET and follows redirects. Returns a response of any other status. Rejects with a SetupError, which is
 * transient if a retry may help, or with the reason of `signal`.
 */
export async function hubGet(
  hub: Hub,
  address: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<HubResponse> {
  const endpoint = new URL(hub.endpoint);
  let url = new URL(address);
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const response = await getOnce(hub, url, { ...headers, ...authorization(hub, endpoint, url) }, signal);
    if (!redirectStatuses.has(response.status)) return response;
    response.discard();
    url = redirectTarget(response.headers.get("location"), url, endpoint);
  }
  throw new SetupError(`${url.host} redirects in circles.`);
}

function authorization(hub: Hub, endpoint: URL, url: URL): Record<string, string> {
  const own = hub.token !== undefined && url.origin === endpoint.origin;
  return own ? { authorization: `Bearer ${hub.token}` } : {};
}

/**
 * Returns the target of a redirect. Throws a SetupError for an invalid one, and if it leads from an https hub to
 * plain http.
 */
export function redirectTarget(location: string | null, from: URL, endpoint: URL): URL {
  if (location === null || !URL.canParse(location, from.href)) {
    throw new SetupError(`${from.host} redirects without a usable address.`);
  }
  const target = new URL(location, from);
  const allowed = endpoint.protocol === "http:" ? ["http:", "https:"] : ["https:"];
  if (!allowed.includes(target.protocol)) {
    throw new SetupError(`${from.host} redirects to ${target.protocol}//${target.host}: only https is followed.`);
  }
  return target;
}

async function getOnce(hub: Hub, url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<HubResponse> {
  signal.throwIfAborted();
  const connection = new AbortController();
  const timeoutMs = hub.timing.firstByteTimeoutMs;
  const late = new SetupError(`Cannot reach ${url.host}: no answer within ${seconds(timeoutMs)}.`, { kind: "network" });
  const timer = setTimeout(() => connection.abort(late), timeoutMs);
  let response: Response;
  try {
    response = await fetch(url, {
      headers: { "user-agent": "headrace", "accept-encoding": "identity", ...headers },
      redirect: "manual",
      decompress: false,
      signal: AbortSignal.any([signal, connection.signal]),
    });
  } catch (error) {
    throw failure(error, `Cannot reach ${url.host}`, signal, connection.signal);
  } finally {
    clearTimeout(timer);
  }
  return {
    status: response.status,
    headers: response.headers,
    host: url.host,
    chunks: () => readChunks(response, hub, url, signal, connection),
    discard: () => connection.abort(),
  };
}

async function* readChunks(
  response: Response,
  hub: Hub,
  url: URL,
  signal: AbortSignal,
  connection: AbortController,
): AsyncGenerator<Uint8Array, void> {
  const timeoutMs = hub.timing.stallTimeoutMs;
  const stalled = new SetupError(`${url.host} sent nothing for ${seconds(timeoutMs)}.`, { kind: "network" });
  const reader = response.body?.getReader();
  try {
    while (reader !== undefined) {
      const timer = setTimeout(() => connection.abort(stalled), timeoutMs);
      let next: Awaited<ReturnType<typeof reader.read>>;
      try {
        next = await reader.read();
      } catch (error) {
        throw failure(error, `The connection to ${url.host} was lost`, signal, connection.signal);
      } finally {
        clearTimeout(timer);
      }
      if (next.done) return;
      yield next.value;
    }
  } finally {
    connection.abort();
  }
}

/** Converts an error of `fetch` into a SetupError with a clear message. An abort keeps its own reason. */
function failure(error: unknown, what: string, signal: AbortSignal, connection: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (connection.aborted && connection.reason instanceof SetupError) return connection.reason;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";
  if (/CERT|TLS|SSL|EPROTO/.test(code)) {
    const advice = "Behind a proxy that inspects TLS, let NODE_EXTRA_CA_CERTS name the file with its certificate.";
    return new SetupError(`${what} safely (${code}). ${advice}`, { cause: error });
  }
  return new SetupError(`${what} (${code}).`, { kind: "network", cause: error });
}

function seconds(durationMs: number): string {
  return `${durationMs / 1000} s`;
}
