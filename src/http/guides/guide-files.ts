// Reads the built guides: exactly the files of their manifest, compressed at build time and cached once read.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuiltManifest, builtCodings, builtName } from "../content/built-files.ts";
import { codingFor } from "../content/content-coding.ts";

/** One file of the site. */
export interface GuideFile {
  file: string;
  type: string;
  /** The entity tag, equal for equal bytes. */
  tag: string;
  /** Whether the file also exists in compressed form. */
  compressed?: true;
  /** Whether the file's name contains a hash of its content. */
  forever?: true;
}

export interface GuideManifest {
  /**
   * Hashes of the inline scripts in the pages of each version, for the Content-Security-Policy; by the version's
   * address within the site.
   */
  scripts: Readonly<Record<string, readonly string[]>>;
  /** The files by their address within the site. */
  files: Readonly<Record<string, GuideFile>>;
}

/**
 * The cache's limit in bytes. A version of the guides takes 10 MB in all forms; beyond the limit, files are read each
 * time.
 */
const maxCachedBytes = 16_000_000;

/** The cached files of one build. */
interface BuildCache {
  manifest: GuideManifest | undefined;
  files: Map<string, Uint8Array>;
  bytes: number;
}

export class GuideFiles {
  readonly #directory: string;
  readonly #manifest: BuiltManifest<GuideManifest>;
  #cache: BuildCache = { manifest: undefined, files: new Map(), bytes: 0 };

  constructor(directory: string) {
    this.#directory = directory;
    this.#manifest = new BuiltManifest(directory);
  }

  /** Returns the manifest; undefined without a build. A new build is noticed. */
  async manifest(): Promise<GuideManifest | undefined> {
    const manifest = await this.#manifest.read();
    if (manifest !== this.#cache.manifest) this.#cache = { manifest, files: new Map(), bytes: 0 };
    return manifest;
  }

  /** Reads a file in the client's preferred coding; undefined if a new build has just replaced this one. */
  async read({ file, compressed }: GuideFile, acceptEncoding: string | null) {
    const encoding = compressed ? codingFor(acceptEncoding, builtCodings) : undefined;
    const name = builtName(file, encoding);
    // The cache is remembered before the read, so that the file does not enter the cache of a build that comes
    // meanwhile.
    const cache = this.#cache;
    const bytes = cache.files.get(name) ?? (await readFile(join(this.#directory, name)).catch(() => undefined));
    if (!bytes) return undefined;
    if (!cache.files.has(name) && cache.bytes + bytes.length <= maxCachedBytes) {
      cache.files.set(name, bytes);
      cache.bytes += bytes.length;
    }
    return { encoding, bytes };
  }
}
