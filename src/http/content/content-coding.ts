// Chooses the content coding of an answer (RFC 9110, 12.5.3), and compresses on another thread.
import { promisify } from "node:util";
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib";
import type { HeaderFields } from "../../http1/message.ts";
import type { PlainAnswer } from "../exchange/route.ts";

export const codings = ["zstd", "br", "gzip"] as const;
export type Coding = (typeof codings)[number];

const toGzip = promisify(gzip);
const toBrotli = promisify(brotliCompress);
const toZstd = promisify(zstdCompress);

/**
 * The compression effort: `quick` for an answer that is compressed each time, `thorough` for content that is compressed
 * once.
 */
type Effort = "quick" | "thorough";
const levels = {
  quick: { gzip: 5, br: 4, zstd: 3 },
  thorough: { gzip: 9, br: 10, zstd: 15 },
} as const satisfies Record<Effort, Record<Coding, number>>;

/**
 * Minimum length of an answer that is compressed, about one network packet. A shorter answer would not arrive sooner.
 */
const minBytes = 1_400;
const compressible = /^(?:application\/(?:json|openmetrics-text)|text\/)/;

/**
 * Returns the offered coding that the client prefers. If it prefers several equally, returns the first of them. Returns
 * undefined if the answer should stay uncompressed. An uncompressed answer is sent even if the client refuses it,
 * because every client can read it.
 */
export function codingFor<Offered extends Coding>(
  acceptEncoding: string | null,
  offered: readonly Offered[],
): Offered | undefined {
  if (acceptEncoding === null || acceptEncoding === "") return undefined;
  const weights = new Map<string, number>();
  for (const part of acceptEncoding.toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim());
    weights.set(name === "x-gzip" ? "gzip" : name, weightOf(parameters));
  }
  const weigh = (name: string) => weights.get(name) ?? weights.get("*") ?? 0;
  let best: Offered | undefined;
  for (const coding of offered) if (weigh(coding) > (best === undefined ? 0 : weigh(best))) best = coding;
  // If the client prefers `identity` to every offered coding, the answer stays uncompressed.
  const plain = weights.get("identity");
  return best !== undefined && plain !== undefined && plain > weigh(best) ? undefined : best;
}

/** Returns the weight (`q`) of a coding. It is 1 if missing, and 0 if invalid. */
function weightOf(parameters: readonly string[]): number {
  const given = parameters.find((parameter) => parameter.startsWith("q="));
  return given === undefined ? 1 : /^q=[01](?:\.\d{0,3})?$/.test(given) ? Math.min(1, Number(given.slice(2))) : 0;
}

export async function encoded(bytes: Uint8Array, coding: Coding, effort: Effort): Promise<Uint8Array> {
  const level = levels[effort][coding];
  if (coding === "gzip") return await toGzip(bytes, { level });
  if (coding === "br") {
    const params = { [constants.BROTLI_PARAM_QUALITY]: level, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    return await toBrotli(bytes, { params });
  }
  return await toZstd(bytes, { params: { [constants.ZSTD_c_compressionLevel]: level } });
}

/** Reports whether compressing an answer is worthwhile. */
export function isWorthCoding({ status, headers, body }: PlainAnswer): boolean {
  if (status !== 200 || headers["content-encoding"] !== undefined) return false;
  if (typeof body !== "string" && !(body instanceof Uint8Array)) return false;
  return body.length >= minBytes && compressible.test(headers["content-type"] ?? "");
}

/** Returns the bytes of a body, or undefined if the body is streamed. */
function bytesOf(body: PlainAnswer["body"]): Uint8Array | undefined {
  if (typeof body === "string") return Buffer.from(body);
  return body instanceof Uint8Array ? body : undefined;
}

/**
 * Compresses an answer in the client's preferred coding. An answer that stays uncompressed gets `Vary` too, because
 * other clients get it compressed.
 */
export async function inCoding(answer: PlainAnswer, acceptEncoding: string | null): Promise<PlainAnswer> {
  const coding = codingFor(acceptEncoding, codings);
  const headers = withVary(answer.headers);
  const bytes = bytesOf(answer.body);
  if (coding === undefined || bytes === undefined) return { ...answer, headers };
  return {
    status: answer.status,
    headers: { ...headers, "content-encoding": coding, ...weakTag(headers["etag"]) },
    body: await encoded(bytes, coding, "quick"),
  };
}

export function withVary(headers: HeaderFields): HeaderFields {
  const { vary } = headers;
  return { ...headers, vary: vary === undefined ? "Accept-Encoding" : `${vary}, Accept-Encoding` };
}

/** Makes an entity tag weak, because a strong tag promises the same bytes in every coding. */
function weakTag(etag: string | undefined): HeaderFields {
  return etag === undefined || etag.startsWith("W/") ? {} : { etag: `W/${etag}` };
}
