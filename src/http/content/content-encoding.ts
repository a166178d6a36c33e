// Bodies that were compressed for the way: unpacked in steps, no further than a body may be long.
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { areWholeZstdFrames } from "./zstd-frames.ts";

/** What comes out at once; memory beside what is kept. */
const stepBytes = 64 * 1024;
export interface BodyCoding {
  /** Makes what unpacks one body, on a thread of its own. */
  decoder(): Transform;
  /** Whether all of a body is here, where its decoder does not say. */
  isWhole?(packed: Buffer): boolean;
}

const gzip: BodyCoding = { decoder: () => createGunzip({ chunkSize: stepBytes }) };
/** By their names of RFC 9110, 8.4.1, RFC 7932 and RFC 8878. */
const codings: Readonly<Record<string, BodyCoding>> = {
  gzip,
  "x-gzip": gzip,
  deflate: { decoder: () => createInflate({ chunkSize: stepBytes }) },
  br: { decoder: () => createBrotliDecompress({ chunkSize: stepBytes }) },
  zstd: { decoder: () => createZstdDecompress({ chunkSize: stepBytes }), isWhole: areWholeZstdFrames },
};

/** Undefined where the body was not packed. Throws `unsupported_media_type`. */
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
 * The body as it was before. What comes out is held by `request` as well. Rejects with a GatewayError: `request_too_large`
 * where more than `mostBytes` come out, `invalid_request` where it cannot be unpacked, or is not all that was sent.
 */
export function unpacked(
  packed: ByteSpan,
  coding: BodyCoding,
  request: Pick<IncomingRequest, "hold">,
  mostBytes: number,
): Promise<ByteSpan> {
  if (coding.isWhole?.(packed.view) === false) return Promise.reject(notPacked());
  const decoder = coding.decoder();
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let length = 0;
    const stop = (error: GatewayError) => {
      pieces.length = 0;
      decoder.destroy();
      reject(error);
    };
    decoder.on("data", (piece: Buffer) => {
      length += piece.length;
      const refusal = length > mostBytes ? tooLarge(mostBytes) : request.hold(piece.length);
      if (refusal) stop(refusal);
      else pieces.push(piece);
    });
    decoder.on("end", () => {
      if (decoder.writableEnded) resolve(ByteSpan.of(Buffer.concat(pieces, length)));
      // It has found an end before that of what it was given.
      else stop(notPacked());
    });
    decoder.on("error", (cause) => stop(notPacked(cause)));
    decoder.write(packed.view, (error) => {
      if (!error) decoder.end();
    });
  });
}

function notPacked(cause?: unknown): GatewayError {
  return invalidRequest(
    "The body cannot be unpacked: it is not what its Content-Encoding says, ends early, or goes on behind its end.",
    { cause },
  );
}

function tooLarge(mostBytes: number): GatewayError {
  return new GatewayError(
    "request_too_large",
    `The body is larger than the limit of ${mostBytes} bytes once it is unpacked.`,
  );
}
