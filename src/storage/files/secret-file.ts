// The installation's root secret: read from configuration or kept in the data directory, and the keys derived from it.
import { hkdfSync, randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../../base/errors.ts";
import { type KeyRing, mapKeys } from "../../domain/key-ring.ts";
import { createFile, replaceFile } from "./durable-file.ts";

/** Maximum number of secrets. There is more than one only while a secret is being replaced. */
export const maxSecrets = 4;

/**
 * Loads secrets of 32 bytes: the one in use first, then others that are still accepted. Reads `HEADRACE_SECRET`, or
 * else the file `secret` (mode 0600, one per line), which the first start creates. Throws a StartError.
 */
export function loadSecrets(dataDir: string, configured: readonly string[] | undefined): KeyRing {
  const [first, ...older] = configured ?? [];
  if (first !== undefined) return [bytesOf(first), ...older.map(bytesOf)];
  const file = secretFile(dataDir);
  // Two concurrent first starts end up with the same secret.
  if (!existsSync(file)) createFile(file, `${newSecret()}\n`);
  chmodSync(file, 0o600);
  return readSecretFile(file);
}

/** Returns only the secret in use. */
export function loadSecret(dataDir: string, configured: Uint8Array | undefined): Uint8Array {
  return configured ?? loadSecrets(dataDir, undefined)[0];
}

export function secretFile(dataDir: string): string {
  return join(dataDir, "secret");
}

/** Throws a StartError for a file with other content. */
export function readSecretFile(file: string): KeyRing {
  const lines = readFileSync(file, "utf8")
    .trim()
    .split(/(?<!\s)\s*\n\s*/);
  const isSound = lines.length <= maxSecrets && lines.every((line) => /^[0-9a-f]{64}$/i.test(line));
  const [first, ...older] = lines;
  if (!isSound || first === undefined) {
    throw new StartError(
      `${file} does not hold 32 bytes in hex, or up to ${maxSecrets} such lines. Restore it from a backup: with another secret every API key is refused.`,
    );
  }
  return [bytesOf(first), ...older.map(bytesOf)];
}

/**
 * Replaces the file. The new secrets are on disk when this returns, because values made under a secret must not outlive
 * it.
 */
export function writeSecretFile(file: string, secrets: KeyRing): void {
  replaceFile(file, secrets.map((secret) => `${Buffer.from(secret).toString("hex")}\n`).join(""));
}

/** 32 random bytes as hex digits. */
export function newSecret(): string {
  return randomBytes(32).toString("hex");
}

type Purpose =
  | "api-key-pepper-v1"
  | "signing-key-seal-v1"
  | "tool-connection-seal-v1"
  | "tool-server-seal-v1"
  | "upstream-seal-v1"
  | "csrf-v1"
  | "oauth-seal-v1"
  | "pending-seal-v1"
  | "secret-check-v1"
  | "setup-link-v1"
  | "node-token-v1"
  | "replica-forward-v1"
  | "reply-seal-v1"
  | "answer-seal-v1"
  | "answer-digest-v1"
  | "content-key-seal-v1";

/** HKDF-SHA-256 (RFC 5869): an independent key of 32 bytes for each purpose. The purpose contains a version. */
export function deriveKey(secret: Uint8Array, purpose: Purpose): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), `headrace ${purpose}`, 32));
}

export function deriveKeys(secrets: KeyRing, purpose: Purpose): KeyRing {
  return mapKeys(secrets, (secret) => deriveKey(secret, purpose));
}

function bytesOf(hex: string): Uint8Array {
  return Buffer.from(hex, "hex");
}
