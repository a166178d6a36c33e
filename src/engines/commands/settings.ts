// What the configuration says of a command that serves models.
import type { UpstreamSpeech } from "../../domain/models/upstream-speech.ts";

/** Bytes of RAM, and of GPUs by the index that their driver gives them. */
export interface MemorySize {
  readonly ram: number;
  readonly gpu: Readonly<Record<string, number>>;
}

export interface CommandSettings extends UpstreamSpeech {
  /** The name of the engine that it is, for deployments of models and for the log. */
  readonly name: string;
  /** Program and arguments, with `${PORT}` where the port of its HTTP server belongs. */
  readonly command: readonly string[];
  /** Variables on top of the few that every program needs. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute; undefined: that of the gateway. */
  readonly directory: string | undefined;
  /** Ids of the models that it serves, as the server knows them. */
  readonly models: readonly string[];
  /** Absolute paths without which it cannot start: its models are on offer while all of them are there. */
  readonly files?: readonly string[];
  /** The path of its API, without a slash at its end. */
  readonly path: string;
  /** Answers 200 once it can take requests; undefined: `/health`, or the list of models where there is none. */
  readonly readyPath: string | undefined;
  /** Longest time from its start until it is ready. */
  readonly readySeconds: number;
  /** Undefined: learned. */
  readonly memory: MemorySize | undefined;
  /** Idle time after which it is stopped; null: it stays until its memory is needed. */
  readonly keepSeconds: number | null;
  /** Started with the gateway. */
  readonly preload: boolean;
  /** Started with the gateway, and never stopped for others. */
  readonly pinned: boolean;
  /** Only one of a group is loaded at a time. */
  readonly group: string | undefined;
  /** Most requests at once; undefined: measured. */
  readonly parallel: number | undefined;
  /** What it holds of each GPU while it sleeps, by vLLM's API for that; undefined: it cannot sleep. */
  readonly asleepGpu: Readonly<Record<string, number>> | undefined;
  /** Seconds to the first byte of an answer, and between two bytes of it. */
  readonly timeoutSeconds: number;
  readonly idleSeconds: number;
}

/** Where the port of the server belongs in its command. */
export const portMark = "$" + "{PORT}";

/** The command and its variables with the port in them. */
export function withPort(
  { command, env }: CommandSettings,
  port: number,
): { command: string[]; env: Record<string, string> } {
  const filled = (text: string) => text.replaceAll(portMark, `${port}`);
  const variables = Object.entries(env).map(([name, value]) => [name, filled(value)]);
  return { command: command.map(filled), env: Object.fromEntries(variables) };
}

/** The variables of the gateway that its commands get as well: without them hardly a program finds its files. */
const commonVariables = [
  ...["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"],
  // These are what Windows needs.
  ...["Path", "PATHEXT", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"],
];

/** Nothing else of the gateway's environment goes to a command: keys of model services are often there. */
export function commonEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(commonVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

const secretNames = /key|token|secret|password/i;

/** The values of its variables that its output must not show. */
export function secretsOf({ env }: Pick<CommandSettings, "env">): string[] {
  return Object.entries(env).flatMap(([name, value]) => (secretNames.test(name) ? [value] : []));
}
