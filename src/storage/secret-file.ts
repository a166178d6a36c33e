// The installation's root secret: read from configuration or kept in the data directory, and the keys derived from it.
import { hkdfSync, randomBytes } from "node:crypto";
import { chmodSync, existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../domain/errors.ts";

/** 32 bytes from `HEADRACE_SECRET`, else from the file `secret` (mode 0600), which is made at the first start. */
export function loadSecret(dataDir: string, configured: Uint8Array | undefined): Uint8Array {
  if (configured) return configured;
  const file = join(dataDir, "secret");
  if (!existsSync(file)) {
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, `${randomBytes(32).toString("hex")}\n`, { mode: 0o600 });
    try {
      // A link never replaces: of two first starts at once, both end up with the same secret.
      linkSync(draft, file);
    } catch (error) {
      if (!existsSync(file)) throw error;
    } finally {
      unlinkSync(draft);
    }
  }
  chmodSync(file, 0o600);
  const text = readFileSync(file, "utf8").trim();
  if (!/^[0-9a-f]{64}$/i.test(text)) {
    throw new StartError(
      `${file} does not hold 32 bytes in hex. Restore it from a backup: with another secret every API key is refused.`,
    );
  }
  return Buffer.from(text, "hex");
}

/** HKDF-SHA-256 (RFC 5869): one independent key for each purpose, 32 bytes. The purpose carries a version. */
export function deriveKey(
  secret: Uint8Array,
  purpose:
    | "api-key-pepper-v1"
    | "signing-key-seal-v1"
    | "upstream-seal-v1"
    | "csrf-v1"
    | "oauth-seal-v1"
    | "pending-seal-v1"
    | "secret-check-v1"
    | "setup-link-v1"
    | "node-token-v1"
    | "replica-forward-v1",
): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), `headrace ${purpose}`, 32));
}
