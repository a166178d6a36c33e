// The environment of every command, which a test can replace.
import { setTimeout } from "node:timers/promises";
import { loadDataDir, loadPullSource, type PullSource } from "../../config/config.ts";
import { configFolder } from "./config-folder.ts";
import { type CliInput, standardInput } from "./input.ts";
import { createTerminal, type Env, type Terminal } from "./terminal.ts";

export interface CliContext {
  env: Env;
  terminal: Terminal;
  /** Every command except a server calls this first. From then on, the process ends when its output pipe is closed. */
  begin(): void;
  /** Returns the data directory that `headrace serve` would choose, as an absolute path. Rejects with a ConfigError. */
  dataDir(flag: string | undefined): Promise<string>;
  /** Returns the source of pulled models. Throws a ConfigError. */
  pullSource(): PullSource;
  /** The folder of the user's logins: an absolute path. The folder may not exist yet. */
  configFolder: string;
  input: CliInput;
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Waits for `ms` milliseconds. Rejects with the reason of `signal`. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  /** Opens a page in the user's browser. Returns false if no browser can be started. */
  openPage(url: string): boolean;
}

/** 128 plus the number of SIGPIPE: the usual exit code of a program that this signal ends. */
const brokenPipeCode = 141;

/** Creates the context of the real process. `env` comes from config.ts. */
export function createContext(env: Env): CliContext {
  bypassProxyForLoopback(env);
  return {
    env,
    begin: endWhenUnread,
    terminal: createTerminal(process.stdout, process.stderr, env),
    dataDir: (flag) => loadDataDir({ flags: { dataDir: flag }, env }),
    pullSource: () => loadPullSource(env),
    configFolder: configFolder(env),
    input: standardInput(),
    nowMs: Date.now,
    pause: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => signal.throwIfAborted()),
    openPage,
  };
}

/** Opens an address in the user's browser. `url` must be http or https. */
function openPage(url: string): boolean {
  const opener = {
    darwin: ["open"],
    // `start` is not used, because the Windows command line would interpret the & of a query.
    win32: ["rundll32", "url.dll,FileProtocolHandler"],
  }[process.platform as string] ?? ["xdg-open"];
  try {
    Bun.spawn([...opener, url], { stdio: ["ignore", "ignore", "ignore"] }).unref();
    return true;
  } catch {
    return false;
  }
}

/** Ends the process when its output cannot be written: its pipe is closed, for example by `head`, or the disk is full. */
function endWhenUnread(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(brokenPipeCode);
      if (stream === process.stdout) process.stderr.write(`error: The output cannot be written (${error.code}).\n`);
      process.exit(1);
    });
  }
}

/**
 * Keeps requests to this machine away from the proxy of the environment: Bun would send even local requests, with their
 * API key, to the proxy.
 */
function bypassProxyForLoopback(env: Env): void {
  const hosts = [env["NO_PROXY"] ?? env["no_proxy"] ?? "", "localhost", "127.0.0.1", "::1"].filter(
    (host) => host !== "",
  );
  Object.assign(env, { NO_PROXY: hosts.join(","), no_proxy: hosts.join(",") });
}
