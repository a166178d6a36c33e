// Processes that the benchmark starts: their lines, their end by handle, a free port for those that need one named.
import { once } from "node:events";
import { createServer } from "node:net";

export type Child = Bun.Subprocess<"pipe", "pipe", "inherit">;

const stopGraceMs = 5_000;

/** A script of this folder under the same Bun, which ends with this process at the latest. */
export function startScript(
  script: URL,
  { prefix = [], args = [] }: { prefix?: readonly string[]; args?: readonly string[] } = {},
): Child {
  const command = [...prefix, process.execPath, script.pathname, ...args];
  return Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
}

/** Lines of its standard output. */
export async function* linesOf(child: Child): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of child.stdout) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** Asks it to end and waits; kills what does not. */
export async function stop(child: Bun.Subprocess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
  await child.exited;
  clearTimeout(killer);
}

/** A port that was free a moment ago, for programs that cannot be told to pick one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system gave no port.");
  return address.port;
}

/** Waits until `condition` gives something; throws after `deadlineMs`. */
export async function until<Value>(
  condition: () => Value | undefined | Promise<Value | undefined>,
  what: string,
  deadlineMs = 15_000,
): Promise<Value> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined) return value;
    if (performance.now() > end) throw new Error(`${what}: not within ${deadlineMs / 1000} s.`);
    await Bun.sleep(2);
  }
}
