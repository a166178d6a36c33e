// Signs requests between replicas: proves that a request comes from the same installation, is meant for the replica,
// and is not repeated.

import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Bytes } from "../base/bytes/byte-span.ts";
import { type Clock, maxClockDifferenceSeconds as windowSeconds } from "../base/clock.ts";
import { currentKey, type KeyRing, type Keys, keyRing } from "../domain/key-ring.ts";

/** The signed members, besides the time and the nonce. */
export interface SignedRequest {
  method: string;
  path: string;
  /** Id of the replica that is asked. */
  replicaId: string;
  /** The subject of the request, as the text of a header. */
  about: string;
  /** Hex SHA-256 of the body. */
  bodyDigest: string;
}

/** `<Unix seconds>.<nonce>.<signature>` */
const pattern = /^(\d{1,12})\.([\w-]{22})\.([\w-]{43})$/;

export function bodyDigest(body: string | Bytes): string {
  const hash = createHash("sha256");
  if (typeof body === "string") hash.update(body);
  else for (const piece of body.pieces) hash.update(piece);
  return hash.digest("hex");
}

export function signForward(request: SignedRequest, keys: Keys, clock: Pick<Clock, "nowSeconds">): string {
  const at = String(clock.nowSeconds());
  const nonce = randomBytes(16).toString("base64url");
  return `${at}.${nonce}.${signature(request, at, nonce, currentKey(keys))}`;
}

/**
 * Checks signatures. Remembers accepted requests as long as their signatures stay valid, so that none is accepted
 * twice.
 */
export class ForwardVerifier {
  readonly #keys: KeyRing;
  readonly #clock: Clock;
  #seen = new Set<string>();
  #seenBefore = new Set<string>();
  #turnedMs: number;

  constructor(keys: Keys, clock: Clock) {
    this.#keys = keyRing(keys);
    this.#clock = clock;
    this.#turnedMs = clock.monotonicMs();
  }

  /** Reports whether the request is genuine. A request is accepted only once. */
  verify(request: SignedRequest, signed: string): boolean {
    const [, at = "", nonce = "", given = ""] = pattern.exec(signed) ?? [];
    if (given === "" || Math.abs(this.#clock.nowSeconds() - Number(at)) > windowSeconds) return false;
    const isSigned = this.#keys.some((key) =>
      timingSafeEqual(Buffer.from(signature(request, at, nonce, key)), Buffer.from(given)),
    );
    if (!isSigned) return false;
    this.#forgetOld();
    if (this.#seen.has(nonce) || this.#seenBefore.has(nonce)) return false;
    this.#seen.add(nonce);
    return true;
  }

  /**
   * Forgets old nonces. A nonce is remembered for at least the whole window, which extends before and after the current
   * time.
   */
  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#turnedMs < 2 * windowSeconds * 1000) return;
    this.#seenBefore = this.#seen;
    this.#seen = new Set();
    this.#turnedMs = nowMs;
  }
}

function signature(request: SignedRequest, at: string, nonce: string, key: Uint8Array): string {
  const { method, path, replicaId, about, bodyDigest: digest } = request;
  // The members are separated by line breaks, which none of them contains.
  const text = ["headrace replica forward v1", method, path, replicaId, at, nonce, about, digest].join("\n");
  return createHmac("sha256", key).update(text).digest("base64url");
}
