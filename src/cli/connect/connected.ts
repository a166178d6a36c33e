// What was written into the files of clients, so that it can be taken back: kept with this user's own settings.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { makeDirectory, replaceFile } from "../../storage/files/durable-file.ts";
import { parseJson } from "../login/api-request.ts";
import { CliError } from "../terminal/terminal.ts";
import type { Setting } from "./clients.ts";
import { type SettingsFormat, valueAt, withSettings } from "./settings-text.ts";

const change = z.object({
  path: z.array(z.string()),
  /** What was there; missing: nothing. */
  before: z.unknown().optional(),
  /** Digest of what was written: it may be a key. */
  written: z.string(),
});
const entry = z.object({
  file: z.string(),
  isNew: z.boolean(),
  changes: z.array(change),
  /** That of the file before; missing: there was none. */
  mode: z.number().optional(),
  /** Digest of the file as it was before anything was written; missing: there was none. */
  original: z.string().optional(),
  /** Digest of the file as it was left; missing: somebody else has changed it between two times. */
  left: z.string().optional(),
});
const content = z.object({ connected: z.record(z.string(), entry) });

export type ConnectedFile = z.infer<typeof entry>;

export class ConnectedFiles {
  readonly #folder: string;
  readonly path: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, "connected.json");
  }

  /** By the name of what is remembered: the id of a client, or that of another file of it. Throws a CliError where it cannot be understood. */
  read(): Map<string, ConnectedFile> {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "unknown";
      if (code === "ENOENT" || code === "ENOTDIR") return new Map();
      throw new CliError(`${this.path} cannot be read (${code}).`);
    }
    const parsed = content.safeParse(parseJson(text));
    if (parsed.success) return new Map(Object.entries(parsed.data.connected));
    throw new CliError(`${this.path} is damaged. Delete it; what was written before can then only be undone by hand.`);
  }

  put(name: string, file: ConnectedFile | undefined): void {
    const all = this.read();
    if (file) all.set(name, file);
    else all.delete(name);
    makeDirectory(this.#folder);
    replaceFile(this.path, `${JSON.stringify({ connected: Object.fromEntries(all) }, undefined, 2)}\n`);
  }
}

export interface Written {
  /** The file before; undefined: there is none. */
  text: string | undefined;
  after: string;
  mode?: number | undefined;
  file: string;
  settings: readonly Setting[];
}

/** What is to be remembered of settings that are about to be written; `earlier`: of the same file, where some stand there already. */
export function rememberedOf(
  format: SettingsFormat,
  { text, file, settings, after, mode }: Written,
  earlier: ConnectedFile | undefined,
): ConnectedFile {
  const table = format.parse(text ?? "");
  const known = earlier?.file === file ? earlier : undefined;
  const changes = settings.map(({ path, value }) => {
    const now = valueAt(table, path);
    const ours = known?.changes.find((one) => Bun.deepEquals(one.path, path));
    // What we wrote ourselves is not what its owner had.
    const before = ours && ours.written === digestOf(now) ? ours.before : now;
    return { path: [...path], ...(before === undefined ? {} : { before }), written: digestOf(value) };
  });
  // What was written there for another purpose is taken back with it.
  const others = (known?.changes ?? []).filter((one) => !settings.some(({ path }) => Bun.deepEquals(path, one.path)));
  const first = { isNew: text === undefined, mode, original: text === undefined ? undefined : digestOf(text) };
  const { isNew, mode: firstMode, original } = known ?? first;
  const isUnbroken = known === undefined || (text !== undefined && known.left === digestOf(text));
  return {
    ...{ file, isNew, changes: [...others, ...changes] },
    ...(firstMode === undefined ? {} : { mode: firstMode }),
    ...(original === undefined ? {} : { original }),
    ...(isUnbroken ? { left: digestOf(after) } : {}),
  };
}

/** Whether the file is as it was left, and what is kept of it as it was before: then it can be that again, to the byte. */
export function isAsLeft({ isNew, left, original }: ConnectedFile, text: string, kept: string | undefined): boolean {
  if (left === undefined || left !== digestOf(text)) return false;
  return isNew || (kept !== undefined && digestOf(kept) === original);
}

/** The text as it would be without what was written; `kept`: settings that somebody has changed since, which stay. */
export function undone(
  format: SettingsFormat,
  text: string,
  { changes }: ConnectedFile,
): { text: string; kept: string[] } {
  const table = format.parse(text);
  const kept: string[] = [];
  const settings = changes.flatMap(({ path, before, written }): Setting[] => {
    const now = valueAt(table, path);
    if (now === undefined) return [];
    if (digestOf(now) === written) return [{ path, value: before }];
    kept.push(path.join("."));
    return [];
  });
  const left = withSettings(format, text, settings);
  // A table that was made for a setting goes with the last one in it.
  const emptied = new Set(changes.filter(({ path }) => path.length > 1).map(({ path }) => path[0] ?? ""));
  const empty = [...emptied].filter((name) => {
    const value = valueAt(format.parse(left), [name]);
    return typeof value === "object" && value !== null && Object.keys(value).length === 0 && hadNothing(changes, name);
  });
  return {
    text: withSettings(
      format,
      left,
      empty.map((name) => ({ path: [name], value: undefined })),
    ),
    kept,
  };
}

function hadNothing(changes: ConnectedFile["changes"], name: string): boolean {
  return changes.every(({ path, before }) => path[0] !== name || before === undefined);
}

function digestOf(value: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(value) ?? "")
    .digest("base64url");
}
