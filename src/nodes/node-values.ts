// Checks the values in requests about nodes beyond their shape, and normalizes them for storage.

import { invalidRequest } from "../base/errors.ts";
import { everyModel } from "../domain/models/node.ts";

/** Returns each model once, sorted. With `*` the other names are dropped. */
export function modelList(given: readonly string[]): string[] {
  return given.includes(everyModel) ? [everyModel] : [...new Set(given)].sort();
}

const publicKeyBytes = 32;

/** Returns the text of an Ed25519 public key in its single form. Throws `invalid_request`. */
export function publicKeyText(text: string): string {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length === publicKeyBytes && bytes.toString("base64url") === text) return text;
  throw invalidRequest("public_key: must be the 32 bytes of an Ed25519 public key as base64url, without padding.");
}
