// What a build left in a directory: its manifest, read anew where there is a new one, and how its compressed forms are named.
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";

export class BuiltManifest<Manifest> {
  readonly #path: string;
  #read: { mtimeMs: number; manifest: Manifest } | undefined;

  /** `directory`: where the build wrote `manifest.json`. */
  constructor(directory: string) {
    this.#path = join(directory, "manifest.json");
  }

  /** The same object until there is a new build; undefined where nothing was built. */
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

/** The codings in which builds leave their files, the best first; and no other. */
export const builtCodings = ["br", "gzip"] as const;

/** The name under which the build left a file in this coding. */
export function builtName(name: string, encoding: (typeof builtCodings)[number] | undefined): string {
  return encoding === undefined ? name : `${name}.${encoding === "br" ? "br" : "gz"}`;
}
