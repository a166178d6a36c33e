// Tokens that mean nothing by themselves: 256 random bits, of which only a digest is kept.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** Without its prefix. */
export const opaquePattern = /^[\w-]{43}$/;

/** `prefix` tells people, and scanners for leaked secrets, what it is. */
export function newOpaqueToken(prefix = ""): string {
  return `${prefix}${randomBytes(32).toString("base64url")}`;
}

/** Hex SHA-256. A look-up by it tells an attacker nothing through its time, and with so many bits nothing can be guessed. */
export function tokenDigest(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** In constant time: for what can be compared with what was sent because it is derived anew, and not looked up. */
export function sameSecret(wanted: string, given: string): boolean {
  const [one, other] = [Buffer.from(wanted), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}
