// Reads the body of a request once: size, media type, encoding, JSON, nesting.
import { GatewayError } from "../domain/errors.ts";
import { JsonTextError, type Members, scanObject } from "../domain/json-text.ts";

export interface BodyLimits {
  bodyBytes: number;
  /** Levels of objects and arrays. */
  depth: number;
}

export interface JsonBody {
  text: string;
  members: Members;
  body: Record<string, unknown>;
}

/** Several times what any request has; more is an attempt to keep the parser, and with it the process, busy. */
const massLimits = { members: 1_000, names: 100_000, values: 2_000_000 } as const;
const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

export async function readJsonBody(req: Request, limits: BodyLimits): Promise<JsonBody> {
  const type = req.headers.get("content-type");
  if (type === null || !jsonType.test(type)) {
    throw new GatewayError(
      "unsupported_media_type",
      "Send the body as JSON, with the header Content-Type: application/json.",
    );
  }
  const encoding = req.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new GatewayError(
      "unsupported_media_type",
      "Send the body without compression: Content-Encoding is not supported.",
    );
  }
  return parseObject(decodeUtf8(await readBytes(req, limits.bodyBytes)), limits.depth);
}

async function readBytes(req: Request, limit: number): Promise<Uint8Array> {
  const declared = req.headers.get("content-length");
  // Two equal lengths arrive as `5, 5`.
  if (declared !== null && !/^\d+$/.test(declared)) {
    throw new GatewayError("invalid_request", "Content-Length must be one number.", { detail: "content_length" });
  }
  if (declared !== null && Number(declared) > limit) throw tooLarge(limit);
  try {
    return declared !== null ? await req.bytes() : await readChunks(req, limit);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw new GatewayError("invalid_request", "The body ended early.", { detail: "body_incomplete", cause: error });
  }
}

async function readChunks(req: Request, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of req.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

function tooLarge(limit: number): GatewayError {
  return new GatewayError("request_too_large", `The body is larger than the limit of ${limit} bytes.`);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new GatewayError("invalid_request", "The body is not valid UTF-8.");
  }
}

function parseObject(text: string, maxDepth: number): JsonBody {
  if (text === "") throw new GatewayError("invalid_request", "The body is empty; send a JSON object.");
  let members: Members;
  let body: unknown;
  try {
    members = scanObject(text, { ...massLimits, depth: maxDepth });
    body = JSON.parse(text);
  } catch (error) {
    // The parser's own message may quote the body, so it is not shown.
    const reason = error instanceof JsonTextError ? error.message : "it is not valid JSON";
    throw new GatewayError("invalid_request", `The body cannot be used: ${reason}.`);
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new GatewayError("invalid_request", "The body must be a JSON object.");
  }
  return { text, members, body: body as Record<string, unknown> };
}
