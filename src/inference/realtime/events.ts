// Reads the parts of realtime events that the gateway needs.
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { parseOnceRead } from "../../base/text/json-object.ts";
import { bodyMass, JsonTextError, scanObject } from "../../base/text/json-text.ts";
import { eventNames } from "./event-names.ts";
import { isJson, type Json, memberOf } from "./reported-usage.ts";

/** Close codes of WebSocket connections, from RFC 6455, 7.4.1. 1011 is from the IANA registry. */
export const closing = { normal: 1000, goingAway: 1001, refused: 1008, serverFault: 1011 } as const;

const maxEventIdLength = 512;
/** Maximum nesting depth of an event. For comparison, a tool's schema has about ten levels. */
const maxDepth = 100;

const limits = { depth: maxDepth, ...bodyMass };

/** Parses an event from the model server. Throws `invalid_request`. */
export function readServerEvent(bytes: Uint8Array): Json {
  return eventOf(bytes, (text) => {
    scanObject(text, limits);
    return JSON.parse(text);
  });
}

/**
 * Parses a client event strictly, so that the model server cannot understand it differently. Throws `invalid_request`.
 */
export function readClientEvent(bytes: Uint8Array): Json {
  const event = eventOf(bytes, (text) => parseOnceRead(text, limits).value);
  eventNames.require(event);
  return event;
}

function eventOf(bytes: Uint8Array, parse: (text: string) => unknown): Json {
  let event: unknown;
  try {
    event = parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
  } catch (error) {
    const why = error instanceof JsonTextError ? ` This one cannot be used: ${error.message}.` : "";
    throw invalidRequest(`A message must be an event: a JSON object with a type.${why}`);
  }
  if (isJson(event) && typeof event["type"] === "string") return event;
  throw invalidRequest("A message must be an event: a JSON object with a type.");
}

/** Returns the `event_id` that the client set, or null if there is none. */
export function eventIdOf({ event_id: id }: Json): string | null {
  return typeof id === "string" && id.length <= maxEventIdLength ? id : null;
}

export function newEventId(): string {
  return `event_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Returns the id of the response that an event belongs to. */
export function responseIdOf(event: Json): string {
  return String(event["response_id"] ?? memberOf(event, "response")["id"]);
}

/**
 * Returns the token limit of a response, under its name in the current or the preview API. Returns `usual` if neither
 * name is present. Returns undefined for `inf` and for an invalid limit.
 */
export function tokenLimitIn(
  { max_output_tokens: limit, max_response_output_tokens: older }: Json,
  usual: number | undefined,
): number | undefined {
  const said = limit ?? older;
  if (said === undefined || said === null) return usual;
  return typeof said === "number" && Number.isSafeInteger(said) && said > 0 ? said : undefined;
}

export function serverFault(message: string): GatewayError {
  return new GatewayError("upstream_error", message);
}
