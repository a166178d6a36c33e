// A real Redis or Valkey server for tests: on a port of its own, nothing written to disk, ended with the process that started it.
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { RedisClient } from "bun";

const startDeadlineMs = 10_000;
const startAttempts = 5;

export interface RedisServer {
  url: string;
  port: number;
  /** Stops answering without closing a connection, as behind a cable that is cut. */
  pause(): void;
  /** Goes on, with all that it knew. */
  resume(): void;
  /** At once, as after `kill -9` or a loss of power. What it knew is lost. */
  stop(): Promise<void>;
  /** Again, on the same port, empty. */
  start(): Promise<void>;
  /** Forgets everything. */
  flush(): Promise<void>;
  /** One command by a connection of its own. */
  command(name: string, ...args: string[]): Promise<unknown>;
  [Symbol.asyncDispose](): Promise<void>;
}

const program = Bun.which("valkey-server") ?? Bun.which("redis-server");

const running = new Set<Bun.Subprocess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** `directory`: where it saves what it knows, if it is told to; left out: the system's for temporary files. */
/** `settings`: further arguments of the program. */
export async function startRedis(directory = tmpdir(), settings: readonly string[] = []): Promise<RedisServer> {
  if (!program) throw new Error("Neither valkey-server nor redis-server is installed (7.0 or later).");
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      const spawn = () => spawned(program, port, directory, settings);
      return serverOn(spawn, port, await spawn());
    } catch (error) {
      // Somebody else may have taken the port meanwhile.
      if (attempt === startAttempts) throw error;
    }
  }
}

function serverOn(spawn: () => Promise<Bun.Subprocess>, port: number, first: Bun.Subprocess): RedisServer {
  const url = `redis://127.0.0.1:${port}`;
  let child: Bun.Subprocess | undefined = first;
  const command = (name: string, ...args: string[]) => ask(url, name, args);
  const stop = async () => {
    const ended = child;
    child = undefined;
    if (!ended) return;
    ended.kill("SIGKILL");
    await ended.exited;
    running.delete(ended);
  };
  return {
    url,
    port,
    pause: () => child?.kill("SIGSTOP"),
    resume: () => child?.kill("SIGCONT"),
    stop,
    async start() {
      if (!child) child = await spawn();
    },
    async flush() {
      await command("FLUSHALL");
    },
    command,
    [Symbol.asyncDispose]: stop,
  };
}

async function spawned(
  path: string,
  port: number,
  directory: string,
  settings: readonly string[],
): Promise<Bun.Subprocess> {
  const child = Bun.spawn(
    [
      path,
      ...["--bind", "127.0.0.1", "--port", String(port), "--dir", directory],
      ...["--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"],
      ...settings,
    ],
    { stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  );
  running.add(child);
  const deadlineMs = performance.now() + startDeadlineMs;
  for (;;) {
    if (child.exitCode !== null) {
      running.delete(child);
      throw new Error(`${path} ended at its start with code ${child.exitCode}.`);
    }
    const answer = await ask(`redis://127.0.0.1:${port}`, "INFO", ["server"]).catch(() => undefined);
    // Not another server that was faster on this port.
    if (typeof answer === "string" && answer.includes(`process_id:${child.pid}\r`)) return child;
    if (performance.now() > deadlineMs) {
      child.kill("SIGKILL");
      throw new Error(`${path} does not answer on port ${port} after ${startDeadlineMs} ms.`);
    }
    await Bun.sleep(10);
  }
}

async function ask(url: string, name: string, args: string[]): Promise<unknown> {
  const client = new RedisClient(url, { autoReconnect: false, connectionTimeout: startDeadlineMs });
  try {
    await client.connect();
    return await client.send(name, args);
  } finally {
    client.close();
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address && typeof address === "object" ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
