// Sends requests as an SDK sends them, and returns the answers unchanged, to test the wire format.

export interface WireOptions {
  /** The URL with `/v1`. */
  baseUrl: string;
  /** A secret. */
  apiKey: string;
}

export interface WireRequest {
  method?: string;
  /** The request body. An object is sent as JSON, a text as it is. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** Default `bearer`. */
  credential?: "bearer" | "x-api-key" | "wrong" | "none";
}

export interface WireAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body; undefined if it is not JSON. */
  json: unknown;
}

/** Thrown if the key's rate limit would delay a test for too long. */
export class RateLimited extends Error {
  override readonly name = "RateLimited";
}

const maxWaitSeconds = 8;

/** Headers that the openai SDKs send with each request. */
const sdkHeaders = {
  accept: "application/json",
  "user-agent": "OpenAI/JS headrace-doctor",
  "x-stainless-lang": "js",
  "x-stainless-package-version": "7.5.0",
  "x-stainless-retry-count": "0",
} as const;

export class Wire {
  readonly #options: WireOptions;
  #requests = 0;
  #tokens = 0;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  get requests(): number {
    return this.#requests;
  }

  /** Returns the total of tokens that the answers reported. */
  get tokens(): number {
    return this.#tokens;
  }

  /**
   * Returns an answer of any status. If a rate limit asks for a delay, waits once. Rejects like `fetch`, or with
   * RateLimited.
   */
  async ask(path: string, signal: AbortSignal, request: WireRequest = {}): Promise<WireAnswer> {
    const first = await this.#askOnce(path, signal, request);
    if (first.status !== 429) return first;
    const waitSeconds = Number(first.headers.get("retry-after") ?? "NaN");
    if (!(waitSeconds <= maxWaitSeconds)) throw new RateLimited();
    await Bun.sleep(waitSeconds * 1_000);
    signal.throwIfAborted();
    const second = await this.#askOnce(path, signal, request);
    if (second.status === 429) throw new RateLimited();
    return second;
  }

  /** Sends a request. Leaves the body of the answer unread, so that the test can abandon it. */
  open(path: string, signal: AbortSignal, request: WireRequest): Promise<Response> {
    this.#requests++;
    const { method = request.body === undefined ? "GET" : "POST", body, headers, credential = "bearer" } = request;
    return fetch(this.#options.baseUrl + path, {
      method,
      headers: {
        ...sdkHeaders,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...this.#credential(credential),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      redirect: "manual",
      signal,
    });
  }

  async #askOnce(path: string, signal: AbortSignal, request: WireRequest): Promise<WireAnswer> {
    const response = await this.open(path, signal, request);
    const text = await response.text();
    const json = parsed(text);
    this.#count(json);
    return { status: response.status, headers: response.headers, text, json };
  }

  count(tokens: unknown): void {
    if (typeof tokens === "number") this.#tokens += tokens;
  }

  #count(json: unknown): void {
    const usage = (json as { usage?: { total_tokens?: unknown } } | undefined)?.usage;
    this.count(usage?.total_tokens);
  }

  #credential(kind: NonNullable<WireRequest["credential"]>): Record<string, string> {
    const { apiKey } = this.#options;
    if (kind === "none") return {};
    if (kind === "x-api-key") return { "x-api-key": apiKey };
    return { authorization: `Bearer ${kind === "wrong" ? "sk_live_hr_this_is_no_key_of_yours" : apiKey}` };
  }
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
