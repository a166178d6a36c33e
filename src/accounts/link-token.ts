// Tokens of links that work once: what is in the address, and the digest that is kept of it.
import { createHash, randomBytes } from "node:crypto";
import type { LinkPurpose } from "../domain/person.ts";

const pattern = /^[\w-]{43}$/;
const paths: Record<LinkPurpose, string> = { setup: "setup", invitation: "invitations", password_reset: "reset" };

export function newLinkToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Hex SHA-256; undefined for what is no token of ours. Of 256 random bits, no slow digest is needed. */
export function linkDigest(token: string): string | undefined {
  return pattern.test(token) ? createHash("sha256").update(token).digest("hex") : undefined;
}

export function linkUrl(publicOrigin: string, purpose: LinkPurpose, token: string): string {
  return `${publicOrigin}/${paths[purpose]}/${token}`;
}
