// Writes settings into a client's configuration after showing the change, and undoes this later.
import { maskKeys } from "../../domain/api-key.ts";
import type { MaybeOutcome } from "../command.ts";
import type { ServerCall } from "../login/server-command.ts";
import { lineChanges } from "../terminal/line-changes.ts";
import { CliError, printable } from "../terminal/terminal.ts";
import {
  keptPathOf,
  modeOf,
  readClientFile,
  removeClientFile,
  requireOwn,
  requireUnchanged,
  understandingFile,
  writeClientFile,
} from "./client-file.ts";
import type { Client, ClientFile, Setting } from "./clients.ts";
import { type ConnectedFile, ConnectedFiles, isAsLeft, rememberedOf, undone } from "./connected.ts";
import { settingsFormats, withSettings } from "./settings-text.ts";

type Call = Pick<ServerCall<unknown>, "terminal" | "context" | "confirm">;

/** A configuration file of a client, and the record of what was written into it. */
export interface ClientConfigFile extends Pick<ClientFile, "format"> {
  path: string;
  /** The name of the record that remembers the written settings. */
  record: string;
  /** The `headrace connect` command for this file, without `--write` and `--undo`. */
  command: string;
}

export interface Texts {
  settings: readonly Setting[];
  /** The key, if a setting contains it. The file is then readable only for its owner. */
  key?: string;
  /** Members that `--json` prints beside the result. */
  json: Readonly<Record<string, unknown>>;
  /** Prints the steps that are left to the person. */
  showRest(): void;
}

export async function write(call: Call, configFile: ClientConfigFile, telling: Texts): Promise<MaybeOutcome> {
  const { terminal } = call;
  const { path, command } = configFile;
  const { settings, key, json, showRest } = telling;
  const before = readClientFile(path);
  const format = settingsFormats[configFile.format];
  const after = understandingFile(path, () => withSettings(format, before ?? "", settings));
  const isDone = after === before;
  const hasKey = key !== undefined && after.includes(key);
  if (!isDone) await change(call, configFile, { before, after, settings, hasKey });
  const show = () => {
    terminal.note(isDone ? `${path} says so already.\n` : `Written to ${path}. Undo: ${command} --undo\n`);
    showRest();
  };
  return { json: { ...json, file: path, written: !isDone }, show };
}

interface Change {
  before: string | undefined;
  after: string;
  settings: readonly Setting[];
  hasKey: boolean;
}

async function change(
  call: Call,
  { path, format: name, record }: ClientConfigFile,
  { before, after, settings, hasKey }: Change,
): Promise<void> {
  const { context, confirm } = call;
  const format = settingsFormats[name];
  requireOwn(path);
  showChange(call, path, before ?? "", after);
  await confirm({ question: `Write this to ${path}`, canBeUndone: true });
  requireUnchanged(path, before);
  const mode = modeOf(path);
  const connected = new ConnectedFiles(context.configFolder);
  const earlier = connected.read().get(record);
  const remembered = rememberedOf(format, { text: before, after, mode, file: path, settings }, earlier);
  // The record is written first: without it, the change could not be undone.
  connected.put(record, remembered);
  // Only the first write keeps the original text, because later the file contains our settings, including a key.
  const isFirst = earlier?.file !== path;
  try {
    writeClientFile(path, after, { mode: hasKey ? undefined : mode, kept: isFirst ? before : undefined });
  } catch (error) {
    connected.put(record, earlier);
    throw error;
  }
}

/** Undoes what was written into a client's file. `configFile` is undefined if the client has no such file. */
export async function undo(
  call: Call,
  client: Client,
  configFile: ClientConfigFile | undefined,
): Promise<MaybeOutcome> {
  const { terminal, context } = call;
  const connected = new ConnectedFiles(context.configFolder);
  const written = configFile && connected.read().get(configFile.record);
  if (!written) {
    throw new CliError(`Nothing was written for ${client.name} by headrace connect --write.`);
  }
  const { file: path } = written;
  const before = readClientFile(path);
  const { text, kept, isExact } = before === undefined ? gone : asBefore(written, configFile.format, before);
  if (before !== undefined && text !== before) {
    requireOwn(path);
    showChange(call, path, before, text ?? "");
    await call.confirm({
      question: text === undefined ? `Remove ${path}` : `Write this to ${path}`,
      canBeUndone: true,
    });
    requireUnchanged(path, before);
    if (text === undefined) removeClientFile(path);
    else writeClientFile(path, text, { mode: written.mode });
  }
  if (isExact && !written.isNew) removeClientFile(keptPathOf(path));
  connected.put(configFile.record, undefined);
  const show = () => {
    for (const name of kept) terminal.note(`${printable(name)} was changed since, and stays.`);
    if (before === undefined) terminal.note(`${path} is gone already.`);
    else if (isExact) terminal.note(`${client.name} is as it was before.`);
    else terminal.note(`What was written for ${client.name} is taken out; what else was changed since stays.`);
  };
  return { json: { client: client.id, file: path, removed: before !== undefined && text === undefined, kept }, show };
}

interface Undone {
  /** The text to restore; undefined removes the file. */
  text: string | undefined;
  /** Settings that stay, because another program has changed their values since. */
  kept: readonly string[];
  /** True if `text` is exactly the file as it was before the first write. */
  isExact: boolean;
}

const gone: Undone = { text: undefined, kept: [], isExact: false };

function asBefore(written: ConnectedFile, name: ClientFile["format"], text: string): Undone {
  const { file: path } = written;
  const original = readClientFile(keptPathOf(path));
  if (isAsLeft(written, text, original)) {
    return { text: written.isNew ? undefined : original, kept: [], isExact: true };
  }
  const format = settingsFormats[name];
  const { text: remaining, kept } = understandingFile(path, () => undone(format, text, written));
  const isEmpty = Object.keys(understandingFile(path, () => format.parse(remaining))).length === 0;
  const isGone = written.isNew && isEmpty && !/[#/]/.test(remaining);
  return { text: isGone ? undefined : remaining, kept, isExact: false };
}

function showChange({ terminal }: Call, path: string, before: string, after: string): void {
  const { err } = terminal;
  terminal.note(path);
  for (const { sign, line } of lineChanges(before, after)) {
    const shown = `  ${sign} ${printable(maskSecrets(line).replaceAll("\t", "  "))}`;
    terminal.note(sign === "+" ? err.green(shown) : sign === "-" ? err.red(shown) : err.dim(shown));
  }
  terminal.note("");
}

/** Masks our keys, and values whose name suggests a secret. A value that is the name of a variable is shown. */
function maskSecrets(line: string): string {
  return maskKeys(line).replace(secretValue, (whole, begin: string, value: string, end: string) =>
    /^[A-Z][A-Z0-9_]*$|[{$…]/.test(value) ? whole : `${begin}${value.slice(0, 4)}…${end}`,
  );
}

const secretValue = /((?:key|token|secret|password)["']? ?[:=] ?["'])([^"']{8,})(["'])/gi;
