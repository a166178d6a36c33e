// Tokens that mean nothing by themselves: 256 random bits, of which only a digest is kept.
import { createHash, randomBytes } from "node:crypto";

/** `prefix` tells people, and scanners for leaked secrets, what it is. */
export function newOpaqueToken(prefix: string): string {
  return `${prefix}${randomBytes(32).toString("base64url")}`;
}

/** Hex SHA-256. A look-up by it tells an attacker nothing through its time, and with so many bits nothing can be guessed. */
export function tokenDigest(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
