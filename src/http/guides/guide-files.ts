// Reads the built guides. Only files in the manifest are served. They are compressed at build time and cached.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuiltManifest, builtCodings, builtName } from "../content/built-files.ts";
import { codingFor } from "../content/content-coding.ts";

/** One file of the site. */
export interface GuideFile {
  file: string;
  type: string;
  /** The entity tag, derived from the content. */
  tag: string;
  /** True if compressed forms of the file exist. */
  compressed?: true;
  /** True if the file's name contains a hash of its content, so that it can be cached forever. */
  forever?: true;
}

export interface GuideManifest {
  /** Hashes of inline scripts for the Content-Security-Policy, by the path prefix of each guide version. */
  scripts: Readonly<Record<string, readonly string[]>>;
  /** The files by their path within the site. */
  files: Readonly<Record<string, GuideFile>>;
}

/** Maximum bytes of cached files. One version of the guides takes 10 MB. Further files are read from disk each time. */
const maxCachedBytes = 16_000_000;

/** The cache of one build. */
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

  /** Returns the manifest, or undefined if the guides were not built. Detects a new build. */
  async manifest(): Promise<GuideManifest | undefined> {
    const manifest = await this.#manifest.read();
    if (manifest !== this.#cache.manifest) this.#cache = { manifest, files: new Map(), bytes: 0 };
    return manifest;
  }

  /**
   * Reads a file in the coding that the client prefers. Returns undefined if a new build has just replaced the file.
   */
  async read({ file, compressed }: GuideFile, acceptEncoding: string | null) {
    const encoding = compressed ? codingFor(acceptEncoding, builtCodings) : undefined;
    const name = builtName(file, encoding);
    // The cache is remembered before the file is read, because a new build may replace the cache meanwhile.
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
