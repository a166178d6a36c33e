// Reads a build directory: its manifest, again after each build, and the names of its compressed files.
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";

export class BuiltManifest<Manifest> {
  readonly #path: string;
  #read: { mtimeMs: number; manifest: Manifest } | undefined;

  /** `directory` is where the build wrote `manifest.json`. */
  constructor(directory: string) {
    this.#path = join(directory, "manifest.json");
  }

  /** Returns the same object until the next build; undefined without a build. */
  async read(): Promise<Manifest | undefined> {
    try {
      const { mtimeMs } = await stat(this.#path);
      if (this.#read?.mtimeMs !== mtimeMs) {
        this.#read = { mtimeMs, manifest: JSON.parse(await readFile(this.#path, "utf8")) as Manifest };
      }
      return this.#read.manifest;
    } catch {
      return undefined;
    }
  }
}

/** The content codings of built files, the best first. */
export const builtCodings = ["br", "gzip"] as const;

/** Returns the name of a built file in this coding. */
export function builtName(name: string, encoding: (typeof builtCodings)[number] | undefined): string {
  return encoding === undefined ? name : `${name}.${encoding === "br" ? "br" : "gz"}`;
}
