// The configuration of a command that serves models.
import type { UpstreamSpeech } from "../../domain/models/upstream-speech.ts";

/** Memory in bytes: of RAM, and of each GPU by its driver's index. */
export interface MemorySize {
  readonly ram: number;
  readonly gpu: Readonly<Record<string, number>>;
}

export interface CommandSettings extends UpstreamSpeech {
  /** The name of the engine, for deployments of models and for the log. */
  readonly name: string;
  /** The program and its arguments, with `${PORT}` for the port of its HTTP server. */
  readonly command: readonly string[];
  /** Variables in addition to the few that every program needs. */
  readonly env: Readonly<Record<string, string>>;
  /** The working directory as an absolute path. Undefined for the gateway's own. */
  readonly directory: string | undefined;
  /** The ids of the models that the command serves, as its server knows them. */
  readonly models: readonly string[];
  /** Absolute paths of files that the command needs to start. Its models are offered while all of them exist. */
  readonly files?: readonly string[];
  /** The path of the command's API, without a slash at its end. */
  readonly path: string;
  /**
   * A path that answers 200 once the server accepts requests. If undefined, `/health` is polled, or the model list of a
   * server without `/health`.
   */
  readonly readyPath: string | undefined;
  /** The longest time from the start of the command until it is ready. */
  readonly readySeconds: number;
  /** The memory that the command needs. If undefined, it is measured. */
  readonly memory: MemorySize | undefined;
  /** The idle time after which the command is stopped. If null, it stays until its memory is needed. */
  readonly keepSeconds: number | null;
  /** True if the command is started with the gateway. */
  readonly preload: boolean;
  /** Started with the gateway, and never stopped for others. */
  readonly pinned: boolean;
  /** The name of a group of commands, of which only one is loaded at a time. */
  readonly group: string | undefined;
  /** The maximum number of parallel requests. If undefined, it is measured. */
  readonly parallel: number | undefined;
  /**
   * The bytes of each GPU that the command holds while it sleeps, through vLLM's sleep API. If undefined, it cannot
   * sleep.
   */
  readonly asleepGpu: Readonly<Record<string, number>> | undefined;
  /**
   * The longest time to the first byte of an answer, in seconds; `idleSeconds` is the longest time between two bytes.
   */
  readonly timeoutSeconds: number;
  readonly idleSeconds: number;
}

/** The placeholder for the server's port in its command. */
export const portMark = "$" + "{PORT}";

/** Returns the command and its variables with the port inserted. */
export function withPort(
  { command, env }: CommandSettings,
  port: number,
): { command: string[]; env: Record<string, string> } {
  const filled = (text: string) => text.replaceAll(portMark, `${port}`);
  const variables = Object.entries(env).map(([name, value]) => [name, filled(value)]);
  return { command: command.map(filled), env: Object.fromEntries(variables) };
}

/**
 * The environment variables of the gateway that its commands get too: without them hardly any program finds its files.
 */
const commonVariables = [
  ...["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"],
  // Windows programs need these variables.
  ...["Path", "PATHEXT", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"],
];

/**
 * Returns the part of the gateway's environment that a command gets. The rest is withheld, because it often contains
 * keys of model services.
 */
export function commonEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(commonVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

const secretNames = /key|token|secret|password/i;

/** Returns the values of the command's variables that its output must not show. */
export function secretsOf({ env }: Pick<CommandSettings, "env">): string[] {
  return Object.entries(env).flatMap(([name, value]) => (secretNames.test(name) ? [value] : []));
}
