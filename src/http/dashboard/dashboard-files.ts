// The files of the built dashboard, compressed at build time, read at the first request, and cached.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuiltManifest, builtCodings, builtName } from "../content/built-files.ts";
import { codingFor } from "../content/content-coding.ts";

export interface DashboardFile {
  type: string;
  /** The value for `content-encoding`; undefined means none. */
  encoding: "br" | "gzip" | undefined;
  bytes: Uint8Array;
}

/** The names of the files that the page itself loads. */
export interface DashboardEntries {
  script: string;
  style: string;
  /** The scripts that the main script loads immediately. */
  parts: readonly string[];
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};
/** The names of built files contain a hash of their content, so that a name always means the same content. */
const fileName = /^[a-zA-Z0-9-]{1,100}(\.js|\.css)$/;

export class DashboardFiles {
  readonly #directory: string;
  readonly #manifest: BuiltManifest<DashboardEntries>;
  /** The files of the build that has these entries. */
  #files = new Map<string, DashboardFile>();
  #entries: DashboardEntries | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.#manifest = new BuiltManifest(directory);
  }

  /** Returns the entries; undefined without a build. A new build is noticed. */
  async entries(): Promise<DashboardEntries | undefined> {
    const entries = await this.#manifest.read();
    if (entries !== this.#entries) this.#files = new Map();
    this.#entries = entries;
    return entries;
  }

  /** Returns the file; undefined if there is none of this name. */
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
