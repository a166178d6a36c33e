// Entity tags that do not depend on the content coding (RFC 9110, 8.8.3 and 13.1.2).
import { createHash } from "node:crypto";

export function weakTagOf(text: string | Uint8Array): string {
  return `W/"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;
}

/** Reports whether `If-None-Match` contains the tag, by weak comparison. */
export function isSameTag(ifNoneMatch: string | null, tag: string): boolean {
  if (ifNoneMatch === null) return false;
  const opaque = (text: string) => text.trim().replace(/^W\//, "");
  return ifNoneMatch.split(",").some((one) => one.trim() === "*" || opaque(one) === opaque(tag));
}
