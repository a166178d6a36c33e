// A server in a process of its own, for tests of what others do to it: its memory and its event loop are its own.
import { join } from "node:path";
import type { LogFields } from "../../src/base/log.ts";
import type { Garbage, Order, Reply, ServerFigures } from "../fixtures/watched-server.ts";
import { until } from "./headrace.ts";

const file = join(import.meta.dir, "..", "fixtures", "watched-server.ts");

export interface WatchedOptions {
  yaml: string;
  heartbeatMs?: number;
  httpLimits?: Partial<Record<"headMs" | "bodyIdleMs" | "idleMs" | "unsentMs" | "lingerMs" | "connections", number>>;
  /** Words before the command, such as `prlimit --nofile=256`. */
  within?: readonly string[];
}

export interface WatchedServer {
  url: string;
  key: string;
  pid: number;
  dataDir: string;
  /** Since `beginAnew`. */
  figures(): Promise<ServerFigures>;
  /** Collects garbage, forgets stalls and peaks. */
  beginAnew(): Promise<void>;
  /** Collects garbage, what is young first. */
  collect(): Promise<Garbage>;
  reconfigure(yaml: string): Promise<void>;
  logged(event: string): Promise<LogFields[]>;
  request(path: string, init?: { body?: unknown; key?: string; signal?: AbortSignal }): Promise<Response>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startWatchedServer({ within = [], ...options }: WatchedOptions): Promise<WatchedServer> {
  const waiting = new Map<number, (reply: Reply) => void>();
  const child = Bun.spawn([...within, process.execPath, file, JSON.stringify(options)], {
    env: { PATH: "/usr/bin:/bin", BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" },
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    ipc: (reply: Reply) => void waiting.get(reply.id)?.(reply),
  });
  let ready: Extract<Reply, { what: "ready" }> | undefined;
  waiting.set(0, (reply) => {
    if (reply.what === "ready") ready = reply;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}.`);
    return ready;
  }, "the server listens");
  const { url, key, dataDir } = ready as unknown as { url: string; key: string; dataDir: string };
  let last = 0;
  const order = <What extends Reply["what"]>(what: Order["what"], more: object = {}) =>
    new Promise<Extract<Reply, { what: What }>>((resolve, reject) => {
      const id = ++last;
      waiting.set(id, (reply) => {
        waiting.delete(id);
        resolve(reply as Extract<Reply, { what: What }>);
      });
      void child.exited.then((code) => reject(new Error(`The server ended with ${code}.`)));
      child.send({ id, what, ...more } as Order);
    });
  return {
    url,
    key,
    dataDir,
    pid: child.pid,
    figures: async () => (await order<"figures">("figures")).figures,
    beginAnew: async () => void (await order<"done">("begin_anew")),
    collect: async () => (await order<"collected">("collect")).garbage,
    reconfigure: async (yaml) => void (await order<"done">("reconfigure", { yaml })),
    async logged(event) {
      const { text } = await order<"log">("log");
      const lines = text.split("\n").filter(Boolean);
      return lines.map((line) => JSON.parse(line) as LogFields).filter((entry) => entry["event"] === event);
    },
    request(path, { body, key: other = key, signal } = {}) {
      return fetch(url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${other}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
    },
    async [Symbol.asyncDispose]() {
      await Promise.race([order<"done">("close").catch(() => undefined), Bun.sleep(5_000)]);
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
