// Hashes a file while it is downloaded: always by SHA-256, and by git's blob hash if the hub lists only that.
import { createHash } from "node:crypto";
import type { HubFile } from "./model-source.ts";

export interface ContentCheck {
  update(chunk: Uint8Array): void;
  /**
   * Ends the check. Returns the SHA-256 in lower-case hexadecimal, and whether the content has the expected checksum.
   */
  finish(): { sha256: string; matches: boolean };
}

export function contentCheck(file: Pick<HubFile, "bytes" | "checksum">): ContentCheck {
  const sha256 = createHash("sha256");
  // The name of a git object is the hash of a header with type and length, followed by the content (git-scm.com, "Git
  // Objects").
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
