// CORS headers for web pages of the configured origins. By default no origin is allowed.
import type { IncomingRequest } from "../../http1/message.ts";
import type { PlainAnswer } from "./route.ts";

const allowedMethods = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
const exposedHeaders = [
  // MCP clients send the id of their session back, and find the authorization server by the challenge of a 401.
  "mcp-session-id",
  "www-authenticate",
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
  "x-headrace-guardrails",
  "age",
  ...["limit", "remaining", "reset"].flatMap((part) =>
    ["requests", "tokens"].flatMap((kind) => [`x-ratelimit-${part}-${kind}`, `anthropic-ratelimit-${kind}-${part}`]),
  ),
].join(", ");

/**
 * Returns the CORS headers for the request's origin, or only `vary` if the origin is not allowed. Allowing `*` is safe,
 * because these requests never authenticate by cookie.
 */
export function corsHeaders(req: Pick<IncomingRequest, "headers">, origins: readonly string[]): Record<string, string> {
  if (origins.length === 0) return {};
  const origin = req.headers.get("origin");
  if (origins.includes("*"))
    return { "access-control-allow-origin": "*", "access-control-expose-headers": exposedHeaders };
  // Without `vary`, a cache could send the answer for one origin to another.
  if (origin === null || !origins.includes(origin)) return { vary: "Origin" };
  return { "access-control-allow-origin": origin, "access-control-expose-headers": exposedHeaders, vary: "Origin" };
}

/**
 * Answers a CORS preflight request (Fetch standard, 3.2.2). Returns undefined for any other request, and for an origin
 * that is not allowed. All requested headers are allowed, because SDKs send `X-Stainless-*` and others.
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
