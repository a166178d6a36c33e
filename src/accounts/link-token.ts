// Tokens of one-time links: how a token appears in a URL, and the digest that is stored.
import { createHmac } from "node:crypto";
import type { LinkPurpose } from "../domain/people/person.ts";
import { opaquePattern, tokenDigest } from "../policy/credentials/opaque-token.ts";

const paths: Record<LinkPurpose, string> = { setup: "setup", invitation: "invitations", password_reset: "reset" };

/** Returns the digest of a link's token; undefined if the text does not have the form of a token. */
export function linkDigest(token: string): string | undefined {
  return opaquePattern.test(token) ? tokenDigest(token) : undefined;
}

export function linkUrl(publicOrigin: string, purpose: LinkPurpose, token: string): string {
  return `${publicOrigin}/${paths[purpose]}/${token}`;
}

export function newLinkId(): string {
  return `lnk_${Bun.randomUUIDv7()}`;
}

/**
 * Returns the token of a set-up link, the same in every process with the installation's secret, and unpredictable
 * without the secret.
 */
export function setupToken(id: string, key: Uint8Array): string {
  return createHmac("sha256", key).update(`setup ${id}`).digest("base64url");
}
