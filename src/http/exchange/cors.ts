// Cross-origin access for web pages of configured origins; none by default.
import type { IncomingRequest } from "../../http1/message.ts";
import type { PlainAnswer } from "./route.ts";

const allowedMethods = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
const exposedHeaders = [
  "x-request-id",
  "request-id",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  "openai-processing-ms",
  "x-headrace-model",
  "x-headrace-ignored",
  "x-headrace-usage",
  "x-headrace-max-tokens",
  "x-headrace-queue-ms",
  "x-headrace-queue-place",
  "x-headrace-queue-expected-ms",
  "x-headrace-cache",
  "age",
  ...["limit", "remaining", "reset"].flatMap((part) =>
    ["requests", "tokens"].flatMap((kind) => [`x-ratelimit-${part}-${kind}`, `anthropic-ratelimit-${kind}-${part}`]),
  ),
].join(", ");

/**
 * Returns headers for an answer to the request's origin, in a separate object; nothing but `vary` if the origin is not
 * allowed. Credentials are never cookies, so `*` is safe.
 */
export function corsHeaders(req: Pick<IncomingRequest, "headers">, origins: readonly string[]): Record<string, string> {
  if (origins.length === 0) return {};
  const origin = req.headers.get("origin");
  if (origins.includes("*"))
    return { "access-control-allow-origin": "*", "access-control-expose-headers": exposedHeaders };
  // A cache must not answer one origin with the answer for another, or for none.
  if (origin === null || !origins.includes(origin)) return { vary: "Origin" };
  return { "access-control-allow-origin": origin, "access-control-expose-headers": exposedHeaders, vary: "Origin" };
}

/**
 * Answers a preflight (Fetch standard, 3.2.2); undefined for any other request, or for an origin that is not allowed.
 * SDKs send `X-Stainless-*` and other headers, so every requested header is allowed.
 */
export function preflight(
  req: Pick<IncomingRequest, "method" | "headers">,
  origins: readonly string[],
): PlainAnswer | undefined {
  if (req.method !== "OPTIONS" || !req.headers.has("access-control-request-method")) return undefined;
  const headers = corsHeaders(req, origins);
  if (!("access-control-allow-origin" in headers)) return undefined;
  headers["access-control-allow-methods"] = allowedMethods;
  const asked = req.headers.get("access-control-request-headers");
  if (asked) headers["access-control-allow-headers"] = asked;
  headers["access-control-max-age"] = "600";
  return { status: 204, headers, body: "" };
}
