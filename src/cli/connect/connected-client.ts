// Writes what a client is to be told into its configuration, after showing the change, and takes it back.
import { maskKeys } from "../../domain/api-key.ts";
import type { MaybeOutcome } from "../command.ts";
import type { ServerCall } from "../login/server-command.ts";
import { lineChanges } from "../terminal/line-changes.ts";
import { CliError, exitCodes, printable } from "../terminal/terminal.ts";
import {
  keptPathOf,
  modeOf,
  pathOf,
  readClientFile,
  removeClientFile,
  requireOwn,
  requireUnchanged,
  understandingFile,
  writeClientFile,
} from "./client-file.ts";
import type { Client, ClientFile, Target } from "./clients.ts";
import { type ConnectedFile, ConnectedFiles, isAsLeft, rememberedOf, undone } from "./connected.ts";
import { settingsFormats, withSettings } from "./settings-text.ts";

type Call = Pick<ServerCall<unknown>, "terminal" | "context" | "confirm">;

/** `tellRest`: tells what is to be done beside it. */
export async function write(call: Call, client: Client, target: Target, tellRest: () => void): Promise<MaybeOutcome> {
  const { terminal, context } = call;
  const { file } = client;
  if (!file) {
    throw new CliError(
      `${client.name} read variables alone, and no file. headrace connect ${client.id} shows them.`,
      exitCodes.usage,
    );
  }
  const path = pathOf(file, context.env);
  const before = readClientFile(path);
  const settings = file.settings(target);
  const format = settingsFormats[file.format];
  const after = understandingFile(path, () => withSettings(format, before ?? "", settings));
  const isDone = after === before;
  if (!isDone) await change(call, client, { path, before, after, settings, hasKey: after.includes(target.key) });
  const show = () => {
    terminal.note(
      isDone ? `${path} says so already.\n` : `Written to ${path}. Undo: headrace connect ${client.id} --undo\n`,
    );
    tellRest();
  };
  return { json: { client: client.id, model: target.model, file: path, written: !isDone }, show };
}

interface Change {
  path: string;
  before: string | undefined;
  after: string;
  settings: ReturnType<ClientFile["settings"]>;
  hasKey: boolean;
}

async function change(
  call: Call,
  { id, file }: Client,
  { path, before, after, settings, hasKey }: Change,
): Promise<void> {
  const { context, confirm } = call;
  const format = settingsFormats[file?.format ?? "json"];
  requireOwn(path);
  showChange(call, path, before ?? "", after);
  await confirm({ question: `Write this to ${path}`, canBeUndone: true });
  requireUnchanged(path, before);
  const mode = modeOf(path);
  const connected = new ConnectedFiles(context.configFolder);
  const earlier = connected.read().get(id);
  const remembered = rememberedOf(format, { text: before, after, mode, file: path, settings }, earlier);
  // First: what is written and not remembered could not be taken back.
  connected.put(id, remembered);
  // What was there before stays what it was before the first time: later the file has what we wrote, a key among it.
  const isFirst = earlier?.file !== path;
  try {
    writeClientFile(path, after, { mode: hasKey ? undefined : mode, kept: isFirst ? before : undefined });
  } catch (error) {
    connected.put(id, earlier);
    throw error;
  }
}

export async function undo(call: Call, client: Client): Promise<MaybeOutcome> {
  const { terminal, context } = call;
  const connected = new ConnectedFiles(context.configFolder);
  const written = connected.read().get(client.id);
  if (!written || !client.file) {
    throw new CliError(`Nothing was written for ${client.name} by headrace connect --write.`);
  }
  const { file: path } = written;
  const before = readClientFile(path);
  const { text, kept, isExact } = before === undefined ? gone : asBefore(written, client.file, before);
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
  connected.put(client.id, undefined);
  const show = () => {
    for (const name of kept) terminal.note(`${printable(name)} was changed since, and stays.`);
    if (before === undefined) terminal.note(`${path} is gone already.`);
    else if (isExact) terminal.note(`${client.name} is as it was before.`);
    else terminal.note(`What was written for ${client.name} is taken out; what else was changed since stays.`);
  };
  return { json: { client: client.id, file: path, removed: before !== undefined && text === undefined, kept }, show };
}

interface Undone {
  /** Undefined: the file is removed. */
  text: string | undefined;
  /** Settings that somebody has changed since. */
  kept: readonly string[];
  /** Whether it is then as it was before. */
  isExact: boolean;
}

const gone: Undone = { text: undefined, kept: [], isExact: false };

function asBefore(written: ConnectedFile, { format: name }: ClientFile, text: string): Undone {
  const { file: path } = written;
  const original = readClientFile(keptPathOf(path));
  if (isAsLeft(written, text, original)) {
    return { text: written.isNew ? undefined : original, kept: [], isExact: true };
  }
  const format = settingsFormats[name];
  const { text: left, kept } = understandingFile(path, () => undone(format, text, written));
  const isEmpty = Object.keys(understandingFile(path, () => format.parse(left))).length === 0;
  const isGone = written.isNew && isEmpty && !/[#/]/.test(left);
  return { text: isGone ? undefined : left, kept, isExact: false };
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

/** Keys of ours, and what a name says is a secret of somebody else's; the name of a variable is none. */
function maskSecrets(line: string): string {
  return maskKeys(line).replace(secretValue, (whole, begin: string, value: string, end: string) =>
    /^[A-Z][A-Z0-9_]*$|[{$…]/.test(value) ? whole : `${begin}${value.slice(0, 4)}…${end}`,
  );
}

const secretValue = /((?:key|token|secret|password)["']? ?[:=] ?["'])([^"']{8,})(["'])/gi;
