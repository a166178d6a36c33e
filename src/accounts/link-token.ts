// Tokens of links that work once: what is in the address, and the digest that is kept of it.
import { createHmac } from "node:crypto";
import type { LinkPurpose } from "../domain/people/person.ts";
import { opaquePattern, tokenDigest } from "../policy/credentials/opaque-token.ts";

const paths: Record<LinkPurpose, string> = { setup: "setup", invitation: "invitations", password_reset: "reset" };

/** Undefined for what is no token of ours. */
export function linkDigest(token: string): string | undefined {
  return opaquePattern.test(token) ? tokenDigest(token) : undefined;
}

export function linkUrl(publicOrigin: string, purpose: LinkPurpose, token: string): string {
  return `${publicOrigin}/${paths[purpose]}/${token}`;
}

export function newLinkId(): string {
  return `lnk_${Bun.randomUUIDv7()}`;
}

/** The token of a set-up link, for every process that has the installation's secret; nobody else can tell it from a random one. */
export function setupToken(id: string, key: Uint8Array): string {
  return createHmac("sha256", key).update(`setup ${id}`).digest("base64url");
}
