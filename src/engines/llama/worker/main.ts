// The worker process: serves one GGUF model on a Unix domain socket. A crash in native code ends only this process.
import { rmdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { loadLibrary } from "./library.ts";
import { load } from "./load.ts";
import { type ModelFacts, readModelFacts } from "./model-facts.ts";
import { serve } from "./server.ts";
import { workerSettings } from "./settings.ts";

/** Writes the one message to the gateway on standard output. Log lines go to standard error. */
function writeLine(message: object): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${JSON.stringify(message)}\n`, () => resolve());
  });
}

function log(line: string): void {
  process.stderr.write(`${line.replaceAll(/(?<!\s)\s*\n\s*/g, " ")}\n`);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Removes the socket's directory, which a killed gateway cannot remove. */
function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // The directory is not empty, or no longer exists.
  }
}

async function inspect(path: string): Promise<number> {
  try {
    const { chatTemplate: _, author: __, ...facts }: ModelFacts = await readModelFacts(await loadLibrary(), path);
    await writeLine(facts);
    return 0;
  } catch (error) {
    await writeLine({ error: reasonOf(error) });
    return 1;
  }
}

async function run(json: string): Promise<void> {
  const started = performance.now();
  const settings = workerSettings.parse(JSON.parse(json));
  const end = () => {
    rmSync(settings.socket, { force: true });
    process.exit(0);
  };
  process.on("SIGTERM", end);
  const orphaned = () => {
    rmSync(settings.socket, { force: true });
    removeIfEmpty(dirname(settings.socket));
    process.exit(0);
  };
  // The gateway holds the other end of standard input. If the gateway is killed, the input ends and this process exits.
  process.stdin.on("end", orphaned).on("close", orphaned).on("error", orphaned).resume();
  const giveUp = (error: unknown) => {
    log(`error: the engine cannot go on: ${reasonOf(error)}`);
    // The process exits, and the gateway starts a new one.
    process.exit(1);
  };
  const runtime = await load(settings, { log, giveUp });
  rmSync(settings.socket, { force: true });
  serve(settings.socket, runtime);
  await writeLine({
    ready: true,
    context: runtime.contextSize,
    parallel: runtime.parallel,
    threads: runtime.threads,
    loadMs: Math.round(performance.now() - started),
  });
}

/**
 * Runs the worker. With settings as JSON it serves requests; with `--inspect <file>` it describes a GGUF file
 * and exits.
 */
export async function runModel([first = "", second = ""]: readonly string[]): Promise<void> {
  // An unhandled rejection in node-llama-cpp affects one generation, so the process continues.
  process.on("unhandledRejection", (reason) =>
    log(`error: unexpected failure outside of any request: ${reasonOf(reason)}`),
  );
  if (first === "--inspect") process.exit(await inspect(second));
  try {
    await run(first);
  } catch (error) {
    await writeLine({ ready: false, error: reasonOf(error) });
    process.exit(1);
  }
}
