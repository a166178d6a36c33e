// The guides as they were built: only what their manifest lists is there, each file compressed at build time.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuiltManifest, builtCodings, builtName } from "../content/built-files.ts";
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
  readonly #manifest: BuiltManifest<GuideManifest>;

  constructor(directory: string) {
    this.#directory = directory;
    this.#manifest = new BuiltManifest(directory);
  }

  /** Undefined where they were not built. A new build is noticed. */
  manifest(): Promise<GuideManifest | undefined> {
    return this.#manifest.read();
  }

  /** In the form that the client likes best. Throws where a new build has just taken the place of this one. */
  async read({ file, compressed }: GuideFile, acceptEncoding: string | null) {
    const encoding = compressed ? codingFor(acceptEncoding, builtCodings) : undefined;
    return { encoding, bytes: await readFile(join(this.#directory, builtName(file, encoding))) };
  }
}
