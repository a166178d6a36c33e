// Reads the lines of a batch's input file, and checks them as requests.
import { isUtf8 } from "node:buffer";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { fieldError, GatewayError, invalidRequest } from "../base/errors.ts";
import { parseOnceRead } from "../base/text/json-object.ts";
import { bodyMass, JsonTextError } from "../base/text/json-text.ts";
import { shown } from "../base/text/shown.ts";
import { type Operation, operationPaths } from "../domain/models/operation.ts";
import { ClearNames } from "../domain/names/clear-names.ts";
import { decodeRequest, type RequestLimits } from "../requests/decode/decode-request.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import { dialects, operations } from "../requests/dialects/dialects.ts";
import { askedServers } from "../requests/dialects/response/hosted/asked-servers.ts";

/** Request paths of batches, each with its operation. Requests and responses must be JSON. */
export const batchEndpoints: ReadonlyMap<string, Operation> = new Map(
  operations
    .filter((operation) => {
      const { task } = dialects[operation];
      return !task || !(task.form || task.answersBytes({}));
    })
    .map((operation) => [`/v1${operationPaths[operation]}`, operation]),
);

/** A line of the input file. It takes the bytes from offset `start` up to offset `end`, without its line end. */
export interface FoundLine {
  /** Line number, from 1 on. Empty lines count too. */
  line: number;
  start: number;
  end: number;
  /** Bytes of the line; undefined if the line is too long. */
  bytes: Buffer | undefined;
}

/** Maximum nesting depth of a line: the 1,000 levels of a request, and one for the line itself. */
const maxDepth = 1_001;
const lineNames = new ClearNames({ known: ["custom_id", "method", "url", "body"], open: [] });
/** Maximum bytes of a line without its request. */
const frameBytes = 4_096;
const lineEnd = 0x0a;
const maxCustomIdLength = 256;

/** Yields every line that is not blank. Keeps only one line in memory, with at most the bytes of a request. */
export async function* linesOf(
  pieces: AsyncIterable<Uint8Array>,
  { bodyBytes }: Pick<RequestLimits, "bodyBytes">,
): AsyncGenerator<FoundLine> {
  const most = bodyBytes + frameBytes;
  let [line, start, at] = [1, 0, 0];
  let buffered: Buffer[] = [];
  let length = 0;
  const found = (end: number): FoundLine => ({
    ...{ line, start, end },
    bytes: length > most ? undefined : Buffer.concat(buffered),
  });
  const add = (bytes: Buffer) => {
    length += bytes.length;
    if (length <= most) buffered.push(bytes);
    else buffered = [];
  };
  for await (const piece of pieces) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let from = 0;
    for (;;) {
      if (length === 0) {
        const blank = blankLines(bytes, from);
        line += blank.lines;
        from = blank.end;
        start = at + from;
      }
      const to = bytes.indexOf(lineEnd, from);
      if (to < 0) break;
      add(bytes.subarray(from, to));
      const one = found(at + to);
      if (one.bytes === undefined || !isBlank(one.bytes)) yield one;
      from = to + 1;
      [line, start, length, buffered] = [line + 1, at + from, 0, []];
    }
    add(bytes.subarray(from));
    at += bytes.length;
  }
  const last = found(at);
  if (last.bytes === undefined || !isBlank(last.bytes)) yield last;
}

/** Counts the blank lines from offset `from` on, and returns the offset after them. */
function blankLines(bytes: Buffer, from: number): { lines: number; end: number } {
  let [lines, end] = [0, from];
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === lineEnd) {
      lines++;
      end = at + 1;
    } else if (!isBlankByte(byte)) {
      break;
    }
  }
  return { lines, end };
}

/** The `custom_id` and the request of a line. */
export interface LineFrame {
  customId: string;
  body: Readonly<Record<string, unknown>>;
}

/** Reports whether a database can store the text unchanged. */
export function isKeepable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** Parses a line. Throws a GatewayError whose `param` is the faulty member of the line. */
export function readFrame(bytes: Buffer | undefined, endpoint: string, limits: RequestLimits): LineFrame {
  if (!bytes) {
    throw invalidRequest(`The line has more than the ${limits.bodyBytes} bytes that a request may have.`);
  }
  const { custom_id: customId, method = "POST", url, body } = parsed(bytes);
  if (typeof customId !== "string" || customId === "" || customId.length > maxCustomIdLength || !isKeepable(customId)) {
    throw fieldError(
      "custom_id",
      `must be a text of 1 to ${maxCustomIdLength} characters, without U+0000 and halves of characters.`,
    );
  }
  if (method !== "POST") throw fieldError("method", "must be POST.");
  if (url !== endpoint) {
    const got = typeof url === "string" ? `\`${shown(url)}\`` : "no text";
    throw fieldError("url", `must be \`${endpoint}\`, the endpoint of the batch (got ${got}).`);
  }
  if (typeof body !== "object" || body === null) throw fieldError("body", "must be the request as a JSON object.");
  return { customId, body: body as LineFrame["body"] };
}

function parsed(bytes: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = isUtf8(bytes) ? parseOnceRead(bytes.toString("utf8"), { depth: maxDepth, ...bodyMass }).value : undefined;
  } catch (error) {
    if (error instanceof JsonTextError) throw invalidRequest(`The line cannot be used: ${error.message}.`);
    value = undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const line = value as Record<string, unknown>;
    lineNames.require({ ...line, body: null });
    return line;
  }
  throw invalidRequest(
    "The line is no JSON object. Write one in each line: custom_id, method, url and body, with no line end in it.",
  );
}

/** Validates the request like a live request. Throws a GatewayError whose `param` begins with `body`. */
export function requestOf({ body }: LineFrame, endpoint: string, limits: RequestLimits): DecodedRequest {
  const operation = batchEndpoints.get(endpoint);
  if (!operation) throw fieldError("url", "is no endpoint that batches have.");
  try {
    if (body["stream"] === true) throw fieldError("stream", "must be false or left out: nobody reads a stream here.");
    const request = decodeRequest(operation, ByteSpan.of(JSON.stringify(body)), limits);
    if (request.background) throw fieldError("background", "must be false or left out: a batch is in the background.");
    if (request.namesKept) {
      throw invalidRequest(
        "A request of a batch names nothing that is kept: send the conversation itself as `input`, without previous_response_id, conversation and references.",
      );
    }
    const ours = request.namesServers ? askedServers(request.body).find(({ url }) => url === undefined) : undefined;
    if (ours) {
      const rule = "names a server of this gateway: a line may be asked twice, and its tools would be called twice.";
      throw fieldError(ours.place, `${rule} Ask for a response in the background instead.`);
    }
    return request;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { code, message, param } = error;
    throw new GatewayError(code, message, { param: param === undefined ? "body" : `body.${param}` });
  }
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every(isBlankByte);
}

function isBlankByte(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}
