// Remembers the settings that were written into clients' files, so that they can be undone. Stored in the user's
// configuration folder.
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
  /** The setting's value before the write; missing if there was none. */
  before: z.unknown().optional(),
  /** A digest of the written value. The value itself may be a key, so it is not stored. */
  written: z.string(),
});
const entry = z.object({
  file: z.string(),
  isNew: z.boolean(),
  changes: z.array(change),
  /** The file's mode before the first write; missing if there was no file. */
  mode: z.number().optional(),
  /** A digest of the file before the first write; missing if there was no file. */
  original: z.string().optional(),
  /** A digest of the file after the last write; missing if another program changed the file between two writes. */
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

  /**
   * Returns the records by name: the id of a client, or `<id>-tools` if the client has a file of its own for MCP
   * servers. Throws a CliError if they cannot be parsed.
   */
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
  /** The current text of the file; undefined if there is no file. */
  text: string | undefined;
  after: string;
  mode?: number | undefined;
  file: string;
  settings: readonly Setting[];
}

/** Returns the record of settings that are about to be written. `earlier` is the existing record of the same file. */
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
    // If this program wrote the current value, the value before the first write is in the earlier record.
    const before = ours && ours.written === digestOf(now) ? ours.before : now;
    return { path: [...path], ...(before === undefined ? {} : { before }), written: digestOf(value) };
  });
  // Settings from earlier calls stay in the record, so that all are undone together.
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

/**
 * Reports whether the file is unchanged since the last write and its original is stored, so that it can be restored
 * byte for byte.
 */
export function isAsLeft({ isNew, left, original }: ConnectedFile, text: string, kept: string | undefined): boolean {
  if (left === undefined || left !== digestOf(text)) return false;
  return isNew || (kept !== undefined && digestOf(kept) === original);
}

/**
 * Returns the text without the written settings. `kept` lists settings that another program has changed since, which
 * stay.
 */
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
  // A table made for a setting is removed with its last setting.
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
