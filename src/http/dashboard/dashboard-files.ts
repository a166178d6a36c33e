// Serves the built files of the dashboard: compressed at build time, read on the first request, then cached.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuiltManifest, builtCodings, builtName } from "../content/built-files.ts";
import { codingFor } from "../content/content-coding.ts";

export interface DashboardFile {
  type: string;
  /** The `content-encoding` of the file. Undefined if it has none. */
  encoding: "br" | "gzip" | undefined;
  bytes: Uint8Array;
}

/** The names of the files that the HTML page loads directly. */
export interface DashboardEntries {
  script: string;
  style: string;
  /** Scripts that the main script imports. The page preloads them. */
  parts: readonly string[];
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};
/**
 * Matches the names of built files. Each name contains a hash of the file's content, so a file with a given name never
 * changes.
 */
const fileName = /^[a-zA-Z0-9-]{1,100}(\.js|\.css)$/;

export class DashboardFiles {
  readonly #directory: string;
  readonly #manifest: BuiltManifest<DashboardEntries>;
  /** Cached files of the current build. */
  #files = new Map<string, DashboardFile>();
  #entries: DashboardEntries | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.#manifest = new BuiltManifest(directory);
  }

  /** Returns the files for the page, or undefined without a build. Detects a new build. */
  async entries(): Promise<DashboardEntries | undefined> {
    const entries = await this.#manifest.read();
    if (entries !== this.#entries) this.#files = new Map();
    this.#entries = entries;
    return entries;
  }

  /** Returns a built file, or undefined if the name is unknown. */
  async find(name: string, acceptEncoding: string | null): Promise<DashboardFile | undefined> {
    const type = types[fileName.exec(name)?.[1] ?? ""];
    if (type === undefined) return undefined;
    const encoding = codingFor(acceptEncoding, builtCodings);
    const stored = builtName(name, encoding);
    const known = this.#files.get(stored);
    if (known) return known;
    const bytes = await readFile(join(this.#directory, stored)).catch(() => undefined);
    if (!bytes) return undefined;
    const file = { type, encoding, bytes };
    this.#files.set(stored, file);
    return file;
  }
}
