// The guides as they were built: only what their manifest lists is there, each file compressed at build time.
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { codingFor } from "../content/content-coding.ts";

/** One file of the site. */
export interface GuideFile {
  file: string;
  type: string;
  /** The same for the same bytes. */
  tag: string;
  /** Whether it lies there compressed as well. */
  compressed?: true;
  /** Whether its name says what is in it. */
  forever?: true;
}

export interface GuideManifest {
  /** By the address of a version below that of the site: the inline scripts of its pages, as a policy names them. */
  scripts: Readonly<Record<string, readonly string[]>>;
  /** By address below that of the site. */
  files: Readonly<Record<string, GuideFile>>;
}

export class GuideFiles {
  readonly #directory: string;
  #manifest: { of: number; manifest: GuideManifest } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Undefined where they were not built. A new build is noticed. */
  async manifest(): Promise<GuideManifest | undefined> {
    const path = join(this.#directory, "manifest.json");
    try {
      const { mtimeMs } = await stat(path);
      if (this.#manifest?.of !== mtimeMs) {
        this.#manifest = { of: mtimeMs, manifest: JSON.parse(await readFile(path, "utf8")) as GuideManifest };
      }
      return this.#manifest.manifest;
    } catch {
      return undefined;
    }
  }

  /** In the form that the client likes best. Throws where a new build has just taken the place of this one. */
  async read({ file, compressed }: GuideFile, acceptEncoding: string | null) {
    const encoding = compressed ? codingFor(acceptEncoding, ["br", "gzip"]) : undefined;
    const ending = encoding === undefined ? "" : encoding === "br" ? ".br" : ".gz";
    return { encoding, bytes: await readFile(join(this.#directory, file + ending)) };
  }
}
