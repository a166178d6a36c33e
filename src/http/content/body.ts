// Reads the body of a request: checks its size, media type and encoding, and optionally parses JSON.
import { accountTicks } from "../../base/account-ticks.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { type IncomingRequest, RequestBodyError } from "../../http1/message.ts";
import { type BodyLimits, type JsonBody, parseBody } from "../../requests/decode/parse-body.ts";
import { type BodyCoding, codingOf, unpacked } from "./content-encoding.ts";

const charsets = /;\s*charset\s*=([^;]*)/gi;
const utf8Names = new Set(["utf-8", "utf8"]);
const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** Bytes of a body up to which JSON parses within one or two milliseconds. A longer body counts as long. */
const longBodyBytes = 64 * 1024;

/**
 * Reads and parses a JSON body. Returns the body itself if all bytes have arrived, otherwise a promise. Throws or
 * rejects with a GatewayError.
 */
export function readJsonBody(request: IncomingRequest, limits: BodyLimits): JsonBody | Promise<JsonBody> {
  const bytes = readJsonBytes(request, limits);
  return bytes instanceof Promise ? bytes.then((all) => parseBody(all, limits)) : parseBody(bytes, limits);
}

/**
 * Reads a JSON body without parsing it. Each account gets at most one long body per tick of the event loop, because its
 * caller then parses it and so blocks the event loop.
 */
export function readJsonBytes(request: IncomingRequest, limits: BodyLimits): ByteSpan | Promise<ByteSpan> {
  const bytes = readAnyBytes(request, limits);
  return bytes instanceof Promise ? bytes.then((all) => inTick(request, all)) : inTick(request, bytes);
}

function inTick({ memoryAccount: { ids } }: IncomingRequest, bytes: ByteSpan): ByteSpan | Promise<ByteSpan> {
  const tick = bytes.length > longBodyBytes ? accountTicks.next(ids?.account ?? "") : undefined;
  return tick ? tick.then(() => bytes) : bytes;
}

function readAnyBytes(request: IncomingRequest, limits: BodyLimits): ByteSpan | Promise<ByteSpan> {
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

/**
 * Throws for a charset other than UTF-8. JSON is exchanged in UTF-8 (RFC 8259, 8.1), so another charset would be
 * misread.
 */
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

/** Reads the body without parsing it, at most `bodyBytes` bytes. Rejects with a GatewayError. */
export async function readBytes(request: IncomingRequest, bodyBytes: number): Promise<ByteSpan> {
  try {
    return await request.readBody(bodyBytes);
  } catch (error) {
    throw bodyFault(error, bodyBytes);
  }
}

/**
 * Converts the error of a body that did not arrive correctly into an error for clients. Returns any other error
 * unchanged.
 */
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
