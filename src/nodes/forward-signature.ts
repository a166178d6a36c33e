// Signs requests between replicas of the gateway. A signature proves the same installation, names the receiver, and is
// accepted once.

import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Bytes } from "../base/bytes/byte-span.ts";
import { type Clock, maxClockDifferenceSeconds as windowSeconds } from "../base/clock.ts";
import { currentKey, type KeyRing, type Keys, keyRing } from "../domain/key-ring.ts";

/** The signed values, besides the time and a random nonce. */
export interface SignedRequest {
  method: string;
  path: string;
  /** Id of the replica that must handle the request. */
  replicaId: string;
  /** Description of the request, as the text of a header. */
  about: string;
  /** SHA-256 of the body, as hex digits. */
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
 * Verifies signatures. Remembers the nonces of accepted requests while they are valid, so that none is accepted twice.
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

  /** Verifies a signature. Returns true only once for the same request. */
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

  /** Forgets old nonces. They are remembered at least as long as their signature is valid. */
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
  // Line breaks separate the values, and none of them contains one.
  const text = ["headrace replica forward v1", method, path, replicaId, at, nonce, about, digest].join("\n");
  return createHmac("sha256", key).update(text).digest("base64url");
}
