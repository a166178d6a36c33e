// Parses a message of the Responses WebSocket.
import { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { fieldError, invalidRequest } from "../../../base/errors.ts";
import { parseOnceRead } from "../../../base/text/json-object.ts";
import { bodyMass, JsonTextError } from "../../../base/text/json-text.ts";
import { isObject, type Json } from "../../../requests/dialects/response/json.ts";

export interface SocketMessage {
  /** The JSON body of the request for a response. */
  body: ByteSpan;
  /** False if no model runs, because the input is only stored for later responses that continue it. */
  generates: boolean;
}

/**
 * Returns the client's id of the conversation thread, which the gateway repeats in events. Undefined if there is none.
 */
export function streamIdOf({ stream_id: id }: Json): string | undefined {
  return typeof id === "string" && streamIdPattern.test(id) ? id : undefined;
}

/** The highest value that the setting `limits.depth` allows. */
const maxDepth = 1_000;
const streamIdPattern = /^[\x21-\x7e]{1,128}$/;

/** Parses a message. Returns no members for JSON that is not an object. Throws `invalid_request` for invalid JSON. */
export function parseMessage(bytes: Buffer): Json {
  let message: unknown;
  try {
    const text = bytes.toString();
    // Only the highest possible limits are checked here. The request body in the message is checked later against the
    // configured limits.
    message = parseOnceRead(text, { depth: maxDepth, ...bodyMass }).value;
  } catch (error) {
    const why = error instanceof JsonTextError ? ` This one cannot be used: ${error.message}.` : "";
    throw invalidRequest(`A message must be JSON.${why}`);
  }
  return isObject(message) ? message : {};
}

/** Separates the members for the WebSocket from the request body. Throws `invalid_request` for invalid members. */
export function readMessage({ type, stream_id: streamId, generate, ...body }: Json): SocketMessage {
  if (type !== "response.create") {
    throw invalidRequest("type: must be response.create, the one message that is understood here.");
  }
  if (streamId !== undefined && (typeof streamId !== "string" || !streamIdPattern.test(streamId))) {
    throw fieldError("stream_id", "must be 1 to 128 visible ASCII characters.");
  }
  if (generate !== undefined && typeof generate !== "boolean") {
    throw fieldError("generate", "must be true or false; false only prepares what later responses go on from.");
  }
  if (body["background"] === true) {
    throw fieldError("background", "must be false or left out: over a WebSocket, each response is told as it comes.");
  }
  return { body: ByteSpan.of(Buffer.from(JSON.stringify({ ...body, stream: true }))), generates: generate !== false };
}
