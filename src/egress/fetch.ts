// A `fetch` for egress requests, for libraries that accept a custom `fetch`. Reads the whole response up to a
// limit and follows no redirects.
import { readAll } from "../base/bytes/body-source.ts";
import { Cancellation } from "../base/cancellation.ts";
import { EgressRefused } from "./addresses.ts";
import { type EgressAnswer, type EgressOptions, sendEgress } from "./send.ts";

export type EgressFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export interface EgressFetchOptions extends EgressOptions {
  /** Maximum bytes of a response body. */
  maxBytes: number;
}

const withoutBody = new Set([204, 205, 304]);

/**
 * Returns a `fetch` for checked egress. Rejects with an EgressRefused, a ClientError or a BodyTooLongError.
 * `timeoutMs` bounds the whole exchange.
 */
export function egressFetch(options: EgressFetchOptions): EgressFetch {
  return async (url, init = {}) => {
    const cancellation = new Cancellation();
    const timer = setTimeout(() => cancellation.cancel(new EgressRefused("timeout")), options.timeoutMs);
    let answer: EgressAnswer | undefined;
    try {
      const headers = Object.fromEntries(new Headers(init.headers));
      const body = init.body === undefined || init.body === null ? {} : { body: textOf(init.body) };
      const request = { method: init.method ?? "GET", headers: { ...headers, "accept-encoding": "identity" }, ...body };
      answer = await sendEgress(new URL(url), request, options, cancellation);
      const { view } = await readAll(answer.body, options.maxBytes, cancellation, () => {});
      const { status } = answer;
      if (status < 200 || status > 599) throw new EgressRefused("no_http");
      return new Response(withoutBody.has(status) ? null : new Uint8Array(view), {
        status,
        headers: kept(answer.headers),
      });
    } finally {
      clearTimeout(timer);
      answer?.close();
    }
  };
}

/** Returns the body as text. Throws a TypeError unless the body is a string or URLSearchParams. */
function textOf(body: unknown): string {
  if (typeof body === "string") return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError("only text and forms are sent");
}

function kept(lines: EgressAnswer["headers"]): Headers {
  const headers = new Headers();
  for (const name of ["content-type", "location", "www-authenticate"]) {
    const value = lines.get(name);
    if (value !== null) headers.set(name, value);
  }
  return headers;
}
