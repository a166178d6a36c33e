// Validates the values in requests about nodes, and converts them to the stored form.

import { invalidRequest } from "../base/errors.ts";
import { everyModel } from "../domain/models/node.ts";

/** Returns the model names sorted and without duplicates. If `*` is among them, returns only `*`. */
export function modelList(given: readonly string[]): string[] {
  return given.includes(everyModel) ? [everyModel] : [...new Set(given)].sort();
}

const publicKeyBytes = 32;

/** Returns an Ed25519 public key in its canonical form. Throws `invalid_request`. */
export function publicKeyText(text: string): string {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length === publicKeyBytes && bytes.toString("base64url") === text) return text;
  throw invalidRequest("public_key: must be the 32 bytes of an Ed25519 public key as base64url, without padding.");
}
