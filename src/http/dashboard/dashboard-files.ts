// The built dashboard: its files as they were compressed at build time, read when first asked for, and kept.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuiltManifest, builtCodings, builtName } from "../content/built-files.ts";
import { codingFor } from "../content/content-coding.ts";

export interface DashboardFile {
  type: string;
  /** Its coding, as `accept-encoding` names it; undefined: none. */
  encoding: "br" | "gzip" | undefined;
  bytes: Uint8Array;
}

/** Names of the files that the page itself loads. */
export interface DashboardEntries {
  script: string;
  style: string;
  /** Scripts that the first one loads at once. */
  parts: readonly string[];
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};
/** What the build writes: named by their content, so that a name never means anything else. */
const fileName = /^[a-zA-Z0-9-]{1,100}(\.js|\.css)$/;

export class DashboardFiles {
  readonly #directory: string;
  readonly #manifest: BuiltManifest<DashboardEntries>;
  /** Read from the build that has these entries. */
  #files = new Map<string, DashboardFile>();
  #entries: DashboardEntries | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.#manifest = new BuiltManifest(directory);
  }

  /** Undefined where it was not built. A new build is noticed. */
  async entries(): Promise<DashboardEntries | undefined> {
    const entries = await this.#manifest.read();
    if (entries !== this.#entries) this.#files = new Map();
    this.#entries = entries;
    return entries;
  }

  /** Undefined where there is none of this name. */
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
