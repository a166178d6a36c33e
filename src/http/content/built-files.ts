// Reads the manifest of a web build, and again after a new build. Names the compressed forms of its files.
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";

export class BuiltManifest<Manifest> {
  readonly #path: string;
  #read: { mtimeMs: number; manifest: Manifest } | undefined;

  /** `directory` is the build output, which contains `manifest.json`. */
  constructor(directory: string) {
    this.#path = join(directory, "manifest.json");
  }

  /** Returns the manifest, or undefined if nothing was built. Returns the same object until the next build. */
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

/** The content codings of built files, in order of preference. */
export const builtCodings = ["br", "gzip"] as const;

/** Returns the file name of a built file in this content coding. */
export function builtName(name: string, encoding: (typeof builtCodings)[number] | undefined): string {
  return encoding === undefined ? name : `${name}.${encoding === "br" ? "br" : "gz"}`;
}
