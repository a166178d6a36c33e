// Reads the body of a request once: size, media type, encoding, JSON, nesting.
import { isAscii, isUtf8 } from "node:buffer";
import { type ByteSpan, withoutMark } from "../../base/bytes/byte-span.ts";
import { fieldError, GatewayError, invalidRequest } from "../../base/errors.ts";
import { JsonNumberError, parseOnceRead } from "../../base/text/json-object.ts";
import { bodyMass, JsonTextError, type Members } from "../../base/text/json-text.ts";
import { type IncomingRequest, RequestBodyError } from "../../http1/message.ts";
import { type BodyCoding, codingOf, unpacked } from "./content-encoding.ts";

export interface BodyLimits {
  bodyBytes: number;
  /** Levels of objects and arrays. */
  depth: number;
}

export interface JsonBody {
  /** The bytes as the client sent them, without a byte-order mark; they mean `text`. */
  bytes: ByteSpan;
  text: string;
  members: Members;
  body: Record<string, unknown>;
}

const charsets = /;\s*charset\s*=([^;]*)/gi;
const utf8Names = new Set(["utf-8", "utf8"]);
const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** At once where the body is here. Throws, or rejects with, a GatewayError. */
export function readJsonBody(request: IncomingRequest, limits: BodyLimits): JsonBody | Promise<JsonBody> {
  const bytes = readJsonBytes(request, limits);
  return bytes instanceof Promise ? bytes.then((all) => parseBody(all, limits)) : parseBody(bytes, limits);
}

/** Does what `readJsonBody` does; what is sent as JSON is not looked at. */
export function readJsonBytes(request: IncomingRequest, limits: BodyLimits): ByteSpan | Promise<ByteSpan> {
  const { headers } = request;
  const type = headers.get("content-type");
  if (type !== "application/json" && (type === null || !jsonType.test(type))) {
    throw new GatewayError(
      "unsupported_media_type",
      "Send the body as JSON, with the header Content-Type: application/json.",
    );
  }
  if (type !== "application/json") requireUtf8(type);
  const coding = codingOf(headers.get("content-encoding"));
  if (coding) return readUnpacked(request, limits, coding);
  try {
    const bytes = request.readBody(limits.bodyBytes);
    if (!(bytes instanceof Promise)) return bytes;
    return bytes.catch((error: unknown) => {
      throw bodyFault(error, limits.bodyBytes);
    });
  } catch (error) {
    throw bodyFault(error, limits.bodyBytes);
  }
}

/** JSON that systems exchange is UTF-8 (RFC 8259, 8.1): read as that, a text in another charset would be another one. */
function requireUtf8(type: string): void {
  for (const [, sent = ""] of type.matchAll(charsets)) {
    const charset = sent.trim().replace(/^"(.*)"$/, "$1");
    if (utf8Names.has(charset.toLowerCase())) continue;
    const shown = charset.length > 40 ? `${charset.slice(0, 40)}…` : charset;
    throw new GatewayError(
      "unsupported_media_type",
      `Send the body as UTF-8: the header Content-Type says charset=${shown}, and no other charset is read.`,
    );
  }
}

async function readUnpacked(
  request: IncomingRequest,
  { bodyBytes }: BodyLimits,
  coding: BodyCoding,
): Promise<ByteSpan> {
  try {
    return await unpacked(request.flowBody(bodyBytes), coding, request, bodyBytes);
  } catch (error) {
    throw bodyFault(error, bodyBytes);
  }
}

/** The body as it is, of at most so many bytes. Rejects with a GatewayError. */
export async function readBytes(request: IncomingRequest, bodyBytes: number): Promise<ByteSpan> {
  try {
    return await request.readBody(bodyBytes);
  } catch (error) {
    throw bodyFault(error, bodyBytes);
  }
}

/** The error for the client where the body did not come as it should; another as it is. */
export function bodyFault(error: unknown, bodyBytes: number): unknown {
  if (!(error instanceof RequestBodyError)) return error;
  switch (error.fault) {
    case "too_large":
      return new GatewayError("request_too_large", `The body is larger than the limit of ${bodyBytes} bytes.`);
    case "incomplete":
      return invalidRequest("The body ended early.", { detail: "body_incomplete", cause: error });
    case "malformed":
      return invalidRequest(`The body's framing is wrong: ${error.message}`, {
        detail: "body_malformed",
        cause: error,
      });
  }
}

/** Throws a GatewayError. */
export function parseBody(sent: ByteSpan, limits: BodyLimits): JsonBody {
  // Not passed on either: engines may not ignore a mark.
  const bytes = withoutMark(sent);
  const text = decodeUtf8(bytes);
  if (text === "") throw invalidRequest("The body is empty; send a JSON object.");
  let members: Members;
  let body: unknown;
  try {
    ({ members, value: body } = parseOnceRead(text, { depth: limits.depth, ...bodyMass }));
  } catch (error) {
    if (error instanceof JsonNumberError)
      throw fieldError(error.field, "is too large for a number (got more than 1.8e308).");
    // The parser's own message may quote the body, so it is not shown.
    const { message, field } = error instanceof JsonTextError ? error : { message: "it is not valid JSON" };
    throw invalidRequest(`The body cannot be used: ${message}.`, field === undefined ? {} : { param: field });
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidRequest("The body must be a JSON object.");
  }
  return { bytes, text, members, body: body as Record<string, unknown> };
}

/** A third of what TextDecoder takes for a short text. */
function decodeUtf8({ view }: ByteSpan): string {
  if (isAscii(view)) return view.toString("latin1");
  if (isUtf8(view)) return view.toString("utf8");
  throw invalidRequest("The body is not valid UTF-8.");
}
