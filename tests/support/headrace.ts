// A real server for a test: port 0, a temporary data directory, its log kept in memory.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LogFields } from "../../src/base/log.ts";
import { type Config, loadConfig, type ReloadableConfig, readConfigFile } from "../../src/config/config.ts";
import { StreamLog } from "../../src/logging/logging.ts";
import { logSettings } from "../../src/logging/settings.ts";
import { type RunningServer, type ServeOptions, serve } from "../../src/server/serve.ts";
import { nothingIsHeld, nothingIsHeldBy, serverBegan, serverEnded } from "./buffered-bytes.ts";
import { withinMs } from "./long.ts";

export interface TestServer extends RunningServer {
  /** The first key. */
  key: string;
  config: Config;
  dataDir: string;
  log: StreamLog;
  /** Everything logged so far, as JSON lines. */
  logText(): string;
  /** Log entries of one event. */
  logged(event: string): LogFields[];
  /** fetch with the key and, for an object body, JSON. */
  request(
    path: string,
    init?: { method?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Response>;
  /** Writes `yaml` to the configuration file and reloads it. */
  reconfigure(yaml: string): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestServerOptions extends Partial<Omit<ServeOptions, "log">> {
  /** Content of headrace.yaml. */
  yaml?: string;
  flags?: Record<string, unknown>;
  env?: Record<string, string>;
  /** The built-in demo model; off unless asked for, as most tests are about something else. */
  demo?: boolean;
  /** Whether to wait until every engine was asked for its models; on unless asked otherwise. */
  settled?: boolean;
  /** Whether the log takes secrets out; off unless asked for, as whoever writes to it must not rely on that. */
  redaction?: boolean;
  /** Kept after the test; made and removed by the server otherwise. */
  dataDir?: string;
}

/** Whole files of tests run with several workers: `npm test` does so for some, `TEST_WORKERS=2 npm test -- <files>` for any. */
export const allWorkers = process.env["TEST_WORKERS"];

export async function startHeadrace(options: TestServerOptions = {}): Promise<TestServer> {
  const { yaml = "", flags = {}, env = {}, demo = false, settled = true, redaction = false, ...others } = options;
  const { dataDir: givenDir, ...serveOptions } = others;
  const directory = mkdtempSync(join(tmpdir(), "headrace-test-"));
  const dataDir = givenDir ?? join(directory, "data");
  const file = join(directory, "headrace.yaml");
  writeFileSync(file, yaml);
  const config = await loadConfig({
    flags: {
      ...{ port: "0", dataDir, config: file, demo, discoverLocal: serveOptions.localServers !== undefined },
      ...(allWorkers === undefined ? {} : { workers: allWorkers, logFormat: "json" }),
      ...flags,
    },
    env,
    cwd: directory,
    ...(serveOptions.secrets && { secrets: serveOptions.secrets }),
  });
  let text = "";
  const log = new StreamLog("json", (lines) => {
    text += Buffer.from(lines).toString();
  });
  const configureLog = (changed: ReloadableConfig, engines?: RunningServer) => {
    const { level, redact } = logSettings(config, changed, engines);
    log.configure({ level, redact: redaction ? redact : (unsafe) => unsafe });
  };
  configureLog(config);
  const server = await serve(config, { ...serveOptions, log, passLines: (lines) => log.pass(lines) });
  serverBegan(server);
  configureLog(config, server);
  const { ledger } = server.governance;
  const flush = ledger.flush.bind(ledger);
  // What workers have settled is meant as well.
  if (server.workers)
    ledger.flush = async () => {
      await server.workers?.flush();
      await flush();
    };
  if (settled) {
    await server.localServers;
    await server.catalog.refresh();
  }
  const key = server.firstKey.key ?? "";
  const logText = () => {
    log.flush();
    return text;
  };
  const close: RunningServer["close"] = async (...how) => {
    await server.close(...how);
    serverEnded(server);
  };
  return {
    ...server,
    close,
    key,
    config,
    dataDir,
    log,
    logText,
    logged: (event) =>
      logText()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as LogFields)
        .filter((entry) => entry["event"] === event),
    request(path, { method, body, headers = {}, signal } = {}) {
      const isText = typeof body === "string" || body === undefined;
      return fetch(server.url + path, {
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: isText ? (body as string) : JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
    },
    async reconfigure(changed) {
      writeFileSync(file, changed);
      const read = await readConfigFile({
        ...{ path: file, env },
        ...(serveOptions.secrets && { secrets: serveOptions.secrets }),
      });
      await server.reload(read);
      configureLog(read, server);
    },
    async [Symbol.asyncDispose]() {
      if (server.workers) await nothingIsHeldBy(server.workers);
      await close();
      rmSync(directory, { recursive: true, force: true });
      await nothingIsHeld();
    },
  };
}

/** Waits until `condition` gives something; fails loudly after `deadlineMs`. */
export async function until<Value>(
  condition: () => Value | Promise<Value>,
  what: string,
  deadlineMs = 10_000,
): Promise<NonNullable<Value>> {
  const end = performance.now() + withinMs(deadlineMs);
  for (;;) {
    const value = await condition();
    if (value) return value as NonNullable<Value>;
    if (performance.now() > end) throw new Error(`Not within ${deadlineMs} ms: ${what}`);
    await Bun.sleep(10);
  }
}
