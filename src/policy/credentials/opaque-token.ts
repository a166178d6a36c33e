// Opaque tokens: 256 random bits, of which only a digest is stored.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** Matches the token without its prefix. */
export const opaquePattern = /^[\w-]{43}$/;

/** Creates a token. `prefix` tells people, and scanners for leaked secrets, what the token is for. */
export function newOpaqueToken(prefix = ""): string {
  return `${prefix}${randomBytes(32).toString("base64url")}`;
}

/**
 * Returns the hex SHA-256. The time of a look-up by it reveals nothing useful, because 256 random bits cannot be
 * guessed.
 */
export function tokenDigest(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Compares two secrets in constant time. For secrets that are derived again and compared instead of looked up. */
export function sameSecret(wanted: string, given: string): boolean {
  const [one, other] = [Buffer.from(wanted), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}
