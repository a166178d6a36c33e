// A server as a process of its own, to be killed or stopped like one.
import { join } from "node:path";
import { allWorkers, until } from "./headrace.ts";

const root = join(import.meta.dir, "..", "..");

export interface ServerProcess {
  process: Bun.Subprocess<"ignore", "pipe", "inherit">;
  url: string;
  baseUrl: string;
  dataDir: string;
  /** Its log so far, lines of JSON. */
  log(): string;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ServerProcessOptions {
  dataDir: string;
  /** The text of headrace.yaml. */
  config: string;
  args?: readonly string[];
  env?: Record<string, string>;
  /** A module that runs in it before the program. */
  preload?: string;
  /** Path of the `src/main.ts` of another version. */
  main?: string;
}

export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const { dataDir, config, args = [], env = {}, preload, main = join(root, "src", "main.ts") } = options;
  const own = ["serve", "--port", "0", "--config", config, "--data-dir", dataDir, "--no-demo", "--no-discover-local"];
  if (allWorkers !== undefined && options.main === undefined) own.push("--workers", allWorkers);
  const bun = [process.execPath, ...(preload === undefined ? [] : ["--preload", preload])];
  const child = Bun.spawn([...bun, main, ...own, ...args, "--log-format", "json"], {
    cwd: join(config, ".."),
    env: { PATH: "/usr/bin:/bin", HOME: join(config, ".."), BUN_CONFIG_MAX_HTTP_REQUESTS: "65535", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  const decoder = new TextDecoder();
  void (async () => {
    for await (const bytes of child.stdout) text += decoder.decode(bytes, { stream: true });
  })();
  const listening = await until(
    () => {
      if (child.exitCode !== null) throw new Error(`The server ended: ${text}`);
      return /"url":"([^"]+)","port":\d+,"base_url":"([^"]+)"/.exec(text);
    },
    "the server listens",
    20_000,
  );
  const [, url = "", baseUrl = ""] = listening;
  return {
    ...{ process: child, url, baseUrl, dataDir },
    log: () => text,
    async [Symbol.asyncDispose]() {
      child.kill("SIGCONT");
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
