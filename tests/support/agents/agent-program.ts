// Runs an agent as its maker publishes it, in a home of its own, from which nothing but this machine is reached.
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programsFolder, pythonFolder } from "../../../scripts/test-programs.mjs";

const deadlineMs = 50_000;

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** One that runs. */
export interface Running {
  /** On both of its outputs, so far. */
  said(): string;
  hasEnded(): boolean;
  ended: Promise<Ended>;
  /** Ends it, with whatever it started. */
  stop(): void;
}

export interface ProgramHome {
  /** The user's, with the configuration in it. */
  home: string;
  /** Runs a program to its end, which is an error after 50 s. Whatever it started ends with it. */
  run(command: readonly string[], cwd: string, env?: Readonly<Record<string, string>>): Promise<Ended>;
  /** The same, for one with which something is to be done meanwhile. */
  begin(command: readonly string[], cwd: string, env?: Readonly<Record<string, string>>): Running;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The file of a package of npm's, by its path below `node_modules`. */
export function programPath(...path: string[]): string {
  return join(programsFolder, "node_modules", ...path);
}

/** Claude Code, of whichever package npm chose for this machine. */
export function claudeProgram(): string {
  const chosen = readdirSync(programPath("@anthropic-ai")).find((name) => name.startsWith("claude-code-"));
  return programPath("@anthropic-ai", chosen ?? "", "claude");
}

/** opencode, likewise. */
export function opencodeProgram(): string {
  const chosen = readdirSync(programPath()).find((name) => /^opencode-\w+-\w+$/.test(name));
  return programPath(chosen ?? "", "bin", "opencode");
}

export const python = join(pythonFolder, "bin", "python");

export function makeProgramHome(): ProgramHome {
  const home = mkdtempSync(join(tmpdir(), "headrace-agent-home-"));
  // A proxy that lets nobody out: programs look for updates and more, whatever they are told.
  const proxy = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket) {
        socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
      },
    },
  });
  const out = `http://127.0.0.1:${proxy.port}`;
  const proxies = { HTTP_PROXY: out, HTTPS_PROXY: out, http_proxy: out, https_proxy: out };
  const inside = { NO_PROXY: "127.0.0.1,localhost", no_proxy: "127.0.0.1,localhost" };
  const temporary = join(home, "tmp");
  mkdirSync(temporary);
  const begin: ProgramHome["begin"] = (command, cwd, env = {}) =>
    started(command, cwd, {
      ...{ PATH: process.env["PATH"] ?? "", HOME: home, TMPDIR: temporary, LANG: "C.UTF-8" },
      ...{ XDG_CONFIG_HOME: join(home, ".config"), XDG_CACHE_HOME: join(home, ".cache") },
      ...{ XDG_DATA_HOME: join(home, ".local", "share"), XDG_STATE_HOME: join(home, ".local", "state") },
      ...{ ...proxies, ...inside, ...env },
    });
  return {
    ...{ home, begin },
    run: (command, cwd, env) => begin(command, cwd, env).ended,
    async [Symbol.asyncDispose]() {
      proxy.stop(true);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function started(command: readonly string[], cwd: string, env: Record<string, string>): Running {
  const child = Bun.spawn([...command], {
    ...{ cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    // A group of its own, which ends as a whole.
    detached: true,
  });
  const said = { stdout: "", stderr: "" };
  const read = async (name: keyof typeof said) => {
    for await (const text of child[name].pipeThrough(new TextDecoderStream())) said[name] += text;
  };
  const stop = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // Nobody is left in it.
    }
  };
  return {
    stop,
    said: () => `${said.stdout}\n${said.stderr}`,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    ended: toItsEnd(child, stop, Promise.all([read("stdout"), read("stderr")]), () => {
      return { what: command[0] ?? "", ...said };
    }),
  };
}

async function toItsEnd(
  child: Pick<Bun.Subprocess, "exited">,
  stop: () => void,
  whole: Promise<unknown>,
  reported: () => { what: string; stdout: string; stderr: string },
): Promise<Ended> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, deadlineMs);
  try {
    const code = await child.exited;
    stop();
    await whole;
    const { what, ...said } = reported();
    if (isLate) throw new Error(`${what} ran for more than ${deadlineMs} ms:\n${said.stdout}\n${said.stderr}`);
    return { code, ...said };
  } finally {
    clearTimeout(timer);
  }
}
