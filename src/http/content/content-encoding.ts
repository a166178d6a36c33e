// Decompresses a request body while it arrives, up to a maximum length.
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { freeBytes } from "../../base/bytes/free-bytes.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { ZstdFrames } from "./zstd-frames.ts";

/** Size in bytes of one piece of decompressed output. */
const stepBytes = 64 * 1024;
export interface BodyCoding {
  /** Creates a decompressor, which runs on another thread. */
  decoder(): Transform;
  /** Checks that the compressed zstd frames are complete, because zstd's decoder does not report a truncated body. */
  frames?(): ZstdFrames;
}

const gzip: BodyCoding = { decoder: () => createGunzip({ chunkSize: stepBytes }) };
/** The content codings by name (RFC 9110, 8.4.1, RFC 7932 and RFC 8878). */
const codings: Readonly<Record<string, BodyCoding>> = {
  gzip,
  "x-gzip": gzip,
  deflate: { decoder: () => createInflate({ chunkSize: stepBytes }) },
  br: { decoder: () => createBrotliDecompress({ chunkSize: stepBytes }) },
  zstd: { decoder: () => createZstdDecompress({ chunkSize: stepBytes }), frames: () => new ZstdFrames() },
};

/** Returns the coding, or undefined for an uncompressed body. Throws `unsupported_media_type` for an unknown coding. */
export function codingOf(encoding: string | null): BodyCoding | undefined {
  if (encoding === null) return undefined;
  const name = encoding.trim().toLowerCase();
  if (name === "identity") return undefined;
  const coding = Object.hasOwn(codings, name) ? codings[name] : undefined;
  if (coding) return coding;
  throw new GatewayError(
    "unsupported_media_type",
    "The body's Content-Encoding is not supported: send it as it is, or compressed once, by gzip, deflate, br or zstd.",
  );
}

/**
 * Returns the decompressed body. Rejects with `request_too_large` above `maxBytes`, with `invalid_request` for corrupt
 * or truncated data, or with the source's error. Only the decompressed bytes count on the memory account of `request`.
 */
export function unpacked(
  source: BodySource,
  coding: BodyCoding,
  request: Pick<IncomingRequest, "hold">,
  maxBytes: number,
): Promise<ByteSpan> {
  return new Promise((resolve, reject) => {
    source.flow(new Unpacking(source, coding, request, maxBytes, resolve, reject));
  });
}

class Unpacking implements BodySink {
  readonly #source: BodySource;
  readonly #decoder: Transform;
  readonly #frames: ZstdFrames | undefined;
  readonly #reject: (error: unknown) => void;
  #pieces: Buffer[] = [];
  #length = 0;
  /** The number of pieces that the decoder has not consumed yet. */
  #writing = 0;
  #hasBegun = false;
  #hasEnded = false;
  #isOver = false;

  constructor(
    source: BodySource,
    coding: BodyCoding,
    request: Pick<IncomingRequest, "hold">,
    maxBytes: number,
    resolve: (body: ByteSpan) => void,
    reject: (error: unknown) => void,
  ) {
    this.#source = source;
    this.#decoder = coding.decoder();
    this.#frames = coding.frames?.();
    this.#reject = reject;
    this.#decoder.on("data", (piece: Buffer) => {
      if (this.#isOver) return;
      this.#length += piece.length;
      const refusal = this.#length > maxBytes ? tooLarge(maxBytes) : request.hold(piece.length);
      if (refusal) this.fail(refusal);
      else this.#pieces.push(piece);
    });
    this.#decoder.on("drain", () => this.#source.resume());
    this.#decoder.on("end", () => {
      // If the decoder ends before its input does, other data follows the compressed body.
      if (!this.#decoder.writableEnded || this.#frames?.areWhole === false) this.fail(notPacked());
      if (this.#isOver) return;
      this.#isOver = true;
      resolve(this.#joined());
    });
    this.#decoder.on("error", (cause) => this.fail(notPacked(cause)));
  }

  data(bytes: ByteSpan): void {
    if (this.#isOver) return;
    // The source may reuse its buffer before the decoder has read it, so the bytes are copied.
    const piece = Buffer.from(bytes.view);
    this.#frames?.push(piece);
    this.#hasBegun = true;
    this.#writing++;
    const hasRoom = this.#decoder.write(piece, (error) => {
      this.#writing--;
      if (!error) this.#endDecoder();
    });
    if (!hasRoom) this.#source.pause();
  }

  end(): void {
    this.#hasEnded = true;
    // An empty body is no valid compressed body, but the decoder would not report it.
    if (this.#hasBegun) this.#endDecoder();
    else this.fail(notPacked());
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pieces = [];
    this.#decoder.destroy();
    this.#source.cancel();
    this.#reject(error);
  }

  /**
   * Ends the decoder once it has consumed all input. If it were ended earlier, data after the compressed body would not
   * be noticed.
   */
  #endDecoder(): void {
    if (this.#hasEnded && this.#writing === 0 && !this.#isOver) this.#decoder.end();
  }

  #joined(): ByteSpan {
    const body = Buffer.allocUnsafeSlow(this.#length);
    let at = 0;
    for (const piece of this.#pieces) {
      at += piece.copy(body, at);
      freeBytes(piece);
    }
    this.#pieces = [];
    return ByteSpan.of(body);
  }
}

function notPacked(cause?: unknown): GatewayError {
  return invalidRequest(
    "The body cannot be unpacked: it is not what its Content-Encoding says, ends early, or goes on behind its end.",
    { cause },
  );
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError(
    "request_too_large",
    `The body is larger than the limit of ${maxBytes} bytes once it is unpacked.`,
  );
}
