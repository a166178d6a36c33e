// The guides as they were built: what their manifest lists and nothing else, compressed at build time, kept once read.
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

/** A version of the guides takes 10 MB in all of its forms; what is above is read each time. */
const maxHeldBytes = 16_000_000;

/** What was read of one build. */
interface Held {
  manifest: GuideManifest | undefined;
  files: Map<string, Uint8Array>;
  bytes: number;
}

export class GuideFiles {
  readonly #directory: string;
  readonly #manifest: BuiltManifest<GuideManifest>;
  #held: Held = { manifest: undefined, files: new Map(), bytes: 0 };

  constructor(directory: string) {
    this.#directory = directory;
    this.#manifest = new BuiltManifest(directory);
  }

  /** Undefined where they were not built. A new build is noticed. */
  async manifest(): Promise<GuideManifest | undefined> {
    const manifest = await this.#manifest.read();
    if (manifest !== this.#held.manifest) this.#held = { manifest, files: new Map(), bytes: 0 };
    return manifest;
  }

  /** In the form that the client likes best; undefined where a new build has just taken the place of this one. */
  async read({ file, compressed }: GuideFile, acceptEncoding: string | null) {
    const encoding = compressed ? codingFor(acceptEncoding, builtCodings) : undefined;
    const name = builtName(file, encoding);
    // What is read now does not get among the files of a build that comes meanwhile.
    const held = this.#held;
    const bytes = held.files.get(name) ?? (await readFile(join(this.#directory, name)).catch(() => undefined));
    if (!bytes) return undefined;
    if (!held.files.has(name) && held.bytes + bytes.length <= maxHeldBytes) {
      held.files.set(name, bytes);
      held.bytes += bytes.length;
    }
    return { encoding, bytes };
  }
}
