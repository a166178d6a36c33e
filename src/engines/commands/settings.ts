// The configuration of a command that serves models.
import type { UpstreamSpeech } from "../../domain/models/upstream-speech.ts";

/** Memory in bytes: `ram`, and `gpu` by the driver's index of each GPU. */
export interface MemorySize {
  readonly ram: number;
  readonly gpu: Readonly<Record<string, number>>;
}

export interface CommandSettings extends UpstreamSpeech {
  /** The name of the engine, used in model deployments and in the log. */
  readonly name: string;
  /** The program and its arguments, with `${PORT}` for the port of its HTTP server. */
  readonly command: readonly string[];
  /** Environment variables of the command, added to those of `commonEnvironment`. */
  readonly env: Readonly<Record<string, string>>;
  /** The working directory as an absolute path. Undefined for the gateway's own working directory. */
  readonly directory: string | undefined;
  /** The ids of the command's models, as its server names them. */
  readonly models: readonly string[];
  /** Absolute paths of files that the command needs. Its models are listed while all of them exist. */
  readonly files?: readonly string[];
  /** The path prefix of the server's API, without a slash at its end. */
  readonly path: string;
  /**
   * A path that answers 200 once the server accepts requests. Default: `/health`, or the model list if `/health`
   * is missing.
   */
  readonly readyPath: string | undefined;
  /** The longest time from the start of the command until it is ready. */
  readonly readySeconds: number;
  /** The memory that the command needs. If undefined, it is measured. */
  readonly memory: MemorySize | undefined;
  /** The idle seconds after which the command is stopped. Null to keep it until another model needs its memory. */
  readonly keepSeconds: number | null;
  /** True if the command is started with the gateway. */
  readonly preload: boolean;
  /** True if the command is started with the gateway, and never stopped to free memory for other models. */
  readonly pinned: boolean;
  /** The name of a group of commands. Only one command of a group is loaded at a time. */
  readonly group: string | undefined;
  /** The maximum number of parallel requests. If undefined, the gateway finds it by measuring. */
  readonly parallel: number | undefined;
  /**
   * The bytes on each GPU that the command still uses while it sleeps (vLLM's sleep mode). If undefined, it is
   * stopped instead.
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

/** Environment variables of the gateway that are passed on. Without them hardly any program finds its files. */
const commonVariables = [
  ...["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"],
  // Windows programs need these variables.
  ...["Path", "PATHEXT", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"],
];

/**
 * Returns the variables of the gateway's environment that a command gets. Others are withheld, because they may
 * be API keys.
 */
export function commonEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(commonVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

const secretNames = /key|token|secret|password/i;

/** Returns the secret values of the command's variables, which are masked in its output. */
export function secretsOf({ env }: Pick<CommandSettings, "env">): string[] {
  return Object.entries(env).flatMap(([name, value]) => (secretNames.test(name) ? [value] : []));
}
