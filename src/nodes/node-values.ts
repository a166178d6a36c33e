// Checks the values of requests about nodes beyond their shape, and puts them into the form in which they are kept.

import { GatewayError } from "../base/errors.ts";
import { type Environment, environments } from "../domain/api-key.ts";
import { builtInEngineName } from "../domain/models/engine.ts";
import { everyModel, nodeNamePattern } from "../domain/models/node.ts";

/** Throws `invalid_request`. */
export function nodeName(text: string): string {
  if (!nodeNamePattern.test(text)) {
    throw new GatewayError(
      "invalid_request",
      "name: must be 1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit.",
    );
  }
  if (text !== builtInEngineName) return text;
  throw new GatewayError("invalid_request", `name: ${text} is the built-in engine; choose another.`);
}

/** Each once; all of them are all of them, whatever else is named. */
export function modelList(given: readonly string[]): string[] {
  return given.includes(everyModel) ? [everyModel] : [...new Set(given)].sort();
}

/** Each once, in the usual order. */
export function environmentList(given: readonly Environment[]): Environment[] {
  return environments.filter((environment) => given.includes(environment));
}

const publicKeyBytes = 32;

/** The text of an Ed25519 public key in its one form. Throws `invalid_request`. */
export function publicKeyText(text: string): string {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length === publicKeyBytes && bytes.toString("base64url") === text) return text;
  throw new GatewayError(
    "invalid_request",
    "public_key: must be the 32 bytes of an Ed25519 public key as base64url, without padding.",
  );
}
