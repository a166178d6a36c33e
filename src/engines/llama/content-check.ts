// Hashes content as it streams by: SHA-256 for the record, and git's blob hash for files the hub keeps in git itself.
import { createHash } from "node:crypto";
import type { HubFile } from "./model-source.ts";

export interface ContentCheck {
  update(chunk: Uint8Array): void;
  /** Ends the check; hexadecimal, lower case. */
  finish(): { sha256: string; matches: boolean };
}

export function contentCheck(file: Pick<HubFile, "bytes" | "checksum">): ContentCheck {
  const sha256 = createHash("sha256");
  // A git object's name hashes a header with the type and length before the content (git-scm.com, "Git Objects").
  const blob = file.checksum.algorithm === "git-blob" ? createHash("sha1").update(`blob ${file.bytes}\0`) : undefined;
  return {
    update(chunk) {
      sha256.update(chunk);
      blob?.update(chunk);
    },
    finish() {
      const digest = sha256.digest("hex");
      return { sha256: digest, matches: (blob?.digest("hex") ?? digest) === file.checksum.hex };
    },
  };
}
