// The configuration of a command that serves models.
import type { UpstreamSpeech } from "../../domain/models/upstream-speech.ts";

/** Bytes of RAM, and of GPUs by their driver's index. */
export interface MemorySize {
  readonly ram: number;
  readonly gpu: Readonly<Record<string, number>>;
}

export interface CommandSettings extends UpstreamSpeech {
  /** The name of the engine, for deployments of models and for the log. */
  readonly name: string;
  /** Program and arguments, with `${PORT}` for the port of its HTTP server. */
  readonly command: readonly string[];
  /** Variables in addition to the few that every program needs. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. Undefined for the gateway's directory. */
  readonly directory: string | undefined;
  /** Ids of its models, as the server knows them. */
  readonly models: readonly string[];
  /** Absolute paths that it needs to start. Its models are offered while all of them exist. */
  readonly files?: readonly string[];
  /** The path of its API, without a slash at its end. */
  readonly path: string;
  /** Answers 200 once it accepts requests. If undefined, `/health`, or the model list if that is missing. */
  readonly readyPath: string | undefined;
  /** Longest time from its start until it is ready. */
  readonly readySeconds: number;
  /** If undefined, the memory is measured. */
  readonly memory: MemorySize | undefined;
  /** It is stopped after this idle time. If null, it stays until its memory is needed. */
  readonly keepSeconds: number | null;
  /** Started with the gateway. */
  readonly preload: boolean;
  /** Started with the gateway, and never stopped for others. */
  readonly pinned: boolean;
  /** Only one of a group is loaded at a time. */
  readonly group: string | undefined;
  /** Most parallel requests; measured if undefined. */
  readonly parallel: number | undefined;
  /** What it holds of each GPU while it sleeps, through vLLM's sleep API. If undefined, it cannot sleep. */
  readonly asleepGpu: Readonly<Record<string, number>> | undefined;
  /** Seconds to the first byte of an answer, and between two bytes. */
  readonly timeoutSeconds: number;
  readonly idleSeconds: number;
}

/** Stands for the server's port in its command. */
export const portMark = "$" + "{PORT}";

/** The command and its variables with the port inserted. */
export function withPort(
  { command, env }: CommandSettings,
  port: number,
): { command: string[]; env: Record<string, string> } {
  const filled = (text: string) => text.replaceAll(portMark, `${port}`);
  const variables = Object.entries(env).map(([name, value]) => [name, filled(value)]);
  return { command: command.map(filled), env: Object.fromEntries(variables) };
}

/** Variables of the gateway that its commands get too: without them hardly any program finds its files. */
const commonVariables = [
  ...["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"],
  // Needed on Windows.
  ...["Path", "PATHEXT", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"],
];

/** A command gets nothing else of the gateway's environment, which often contains keys of model services. */
export function commonEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(commonVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

const secretNames = /key|token|secret|password/i;

/** The values of its variables that its output must not show. */
export function secretsOf({ env }: Pick<CommandSettings, "env">): string[] {
  return Object.entries(env).flatMap(([name, value]) => (secretNames.test(name) ? [value] : []));
}
