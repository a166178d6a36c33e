// The error for a path without a route, with a hint at the right path.
import { GatewayError } from "../../base/errors.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { isAskedAsAnthropic } from "./anthropic-errors.ts";
import { pathOf, type RouteTable } from "./route-table.ts";

/** Maximum path segments that are removed from the start to find the right path. They come from a wrong base URL. */
const maxSegmentsTooMany = 8;
const maxShown = 100;

/**
 * Returns the error for an unknown path. A similar path is only suggested and not served, because a proxy in front of
 * the gateway may have checked the path as it was sent. `baseUrl` is the base URL of the API.
 */
export function unrouted(
  req: Pick<IncomingRequest, "method" | "target" | "headers">,
  table: RouteTable,
  baseUrl: string,
): GatewayError {
  const path = pathOf(req.target);
  const shown = short(path);
  const other = otherApis.find(({ pattern }) => pattern.test(path));
  if (other) return new GatewayError("not_found", `There is no endpoint ${shown}. ${other.hint(baseUrl)}`);
  const allowed = table.allowed(path);
  if (allowed.length > 0) {
    return new GatewayError(
      "method_not_allowed",
      `${req.method} is not allowed on ${shown}; use ${allowed.join(" or ")}.`,
    );
  }
  if (path.startsWith("/v1/realtime/")) return pastGateway(shown);
  const meant = meantPath(path, table);
  // Anthropic's clients add `/v1` themselves.
  const ownBase = isAskedAsAnthropic(req, path) ? baseUrl.replace(/\/v1$/, "") : baseUrl;
  const ofBase = meant?.startsWith("/mcp")
    ? " An address of MCP ends without a slash."
    : ` The base URL for clients is ${ownBase}, without a slash or anything else at its end.${orWithout(path, ownBase)}`;
  const hint = meant === undefined ? "" : ` Did you mean ${short(meant)}?${ofBase}`;
  return new GatewayError("not_found", `There is no endpoint ${shown}.${hint} GET /docs/api lists the endpoints.`);
}

/** Returns a hint with a base URL without `/v1`, for clients that add `/v1` themselves, such as Spring AI. */
function orWithout(path: string, base: string): string {
  if (!path.startsWith("/v1/v1/") || !base.endsWith("/v1")) return "";
  return ` If your client adds /v1 itself, its base URL is ${base.slice(0, -"/v1".length)}.`;
}

/** Paths of other vendors' APIs. The most similar path here would be a misleading suggestion. */
const otherApis: readonly { pattern: RegExp; hint(baseUrl: string): string }[] = [
  {
    pattern: /\/fim\/completions\/?$/,
    hint: () => "For text between two others send the same body, prompt and suffix, to POST /v1/completions.",
  },
  {
    pattern: /^\/v1(?:alpha|beta)?\/.+:(?:(?:stream)?GenerateContent|countTokens|(?:batch)?EmbedContents?)$/i,
    hint: (baseUrl) =>
      `Gemini's own API is not served: use a client of OpenAI's API with the base URL ${baseUrl}, such as POST /v1/chat/completions.`,
  },
];

/**
 * Returns the error for a realtime path that is not supported: with its answer, the client would connect directly to
 * the model server, past every limit.
 */
function pastGateway(path: string): GatewayError {
  return new GatewayError(
    "not_found",
    `${path} is not relayed: what it gives goes to the model server directly, past every limit. Open a WebSocket at /v1/realtime?model=…; in a browser, with a short-lived access token (POST /v1/auth/token) as the subprotocol openai-insecure-api-key.<token>.`,
  );
}

/**
 * Returns the path that the client probably meant: without extra slashes, with `/v1` added, or without an extra prefix
 * such as `/api`. Returns undefined if there is no such route.
 */
function meantPath(path: string, table: RouteTable): string | undefined {
  const segments = path.split("/", maxShown).filter((segment) => segment !== "");
  const whole = `/${segments.join("/")}`;
  if (whole !== path && table.allowed(whole).length > 0) return whole;
  for (let i = 0; i < Math.min(segments.length, maxSegmentsTooMany); i++) {
    const versioned = `/v1/${segments.slice(i).join("/")}`;
    if (versioned !== path && table.allowed(versioned).length > 0) return versioned;
  }
  return undefined;
}

function short(path: string): string {
  return path.length > maxShown ? `${path.slice(0, maxShown)}…` : path;
}
