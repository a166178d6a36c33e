// `headrace serve`: starts the server, prints the next steps, follows the configuration file and stops cleanly.
import packageJson from "../../../package.json" with { type: "json" };
import { systemClock } from "../../base/clock.ts";
import {
  type Config,
  endsWithParent,
  loadConfig,
  prepareServerProcess,
  processEnvironment,
  type ReloadableConfig,
  SecretValues,
  serveFlags,
} from "../../config/config.ts";
import type { FoundServer } from "../../engines/local-servers.ts";
import { StreamLog } from "../../logging/logging.ts";
import { logSettings } from "../../logging/settings.ts";
import type { RunningServer } from "../../server/serve.ts";
import { credentialsPath } from "../../storage/files/credentials-file.ts";
import { command, type OptionEntries } from "../command.ts";
import { banner } from "../terminal/banner.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError, reportError } from "../terminal/terminal.ts";
import { releaseWhenQuiet } from "./quiet.ts";
import { watchConfigFile } from "./watch-config.ts";

/** Milliseconds that running answers get to end after the first signal. */
const drainMs = 30_000;
/**
 * Milliseconds after which a second signal stops the server immediately. One Ctrl-C may arrive twice: from the terminal
 * and from npm.
 */
const secondSignalMs = 1_500;
const watchMs = 1_000;
const firstPollMs = 1_000;

/** Returns all options of a server. */
export function serveOptions(): OptionEntries {
  return Object.fromEntries(
    serveFlags().map(({ syntax, description, repeatable }) => [
      syntax,
      repeatable ? ([syntax, description, together] as const) : ([syntax, description] as const),
    ]),
  );
}

function together(value: string, all: readonly string[] | undefined): string[] {
  return [...(all ?? []), value];
}

export const serveCommand = command({
  name: "serve",
  isDefault: true,
  summary: "start the gateway or local node (the default command)",
  description: "Start the gateway or local node.",
  options: serveOptions(),
  examples: [
    "headrace serve                                  on http://127.0.0.1:7545, for this machine only",
    "headrace serve --model ./qwen3.gguf             with a model of your own",
    "headrace serve --mode production --host 0.0.0.0 --public-url https://ai.example.com",
  ],
  keepsRunning: true,
  async run({ context, options }) {
    try {
      await startServer(options, context);
    } catch (error) {
      if (!wantsJson(options, context)) throw error;
      process.exitCode = failAsJson(error, context);
    }
  },
});

/** The terminal display of a server with another purpose, such as a node. The display replaces the banner. */
export interface ServerFace {
  /** If true, only problems are logged, because the display shows normal operation. */
  quiet: boolean;
  /** Called instead of printing the banner. */
  show(server: RunningServer, stop: (reason: string) => Promise<void>): void;
}

/** Runs until a signal ends the process. Rejects if the server cannot start. */
export async function startServer(
  flags: Record<string, unknown>,
  context: CliContext,
  face?: ServerFace,
): Promise<void> {
  prepareServerProcess();
  // Every file that this process writes, including the database and its journal, is readable by its owner only.
  process.umask(0o077);
  const secrets = new SecretValues({ env: processEnvironment(), clock: systemClock });
  const config = await loadConfig({ flags: flags as never, secrets });
  const launcher = process.ppid;
  const log = new StreamLog(config.logFormat);
  const configureLog = (reloaded: ReloadableConfig, server?: RunningServer) => {
    const { level, redact } = logSettings(config, reloaded, server, secrets.values);
    // A person watches the display and not the log, so the log has only problems.
    log.configure({ level: face?.quiet && level === "info" ? "warn" : level, redact });
  };
  configureLog(config);
  process.on("unhandledRejection", (reason) => log.error("unhandled_rejection", { detail: describe(reason) }));
  process.on("uncaughtException", (error) => log.error("uncaught_exception", { detail: describe(error) }));

  // The help of all commands must not load the server.
  const { serve } = await import("../../server/serve.ts");
  const server = await serve(config, { log, secrets, passLines: (lines) => log.pass(lines) }).catch(
    (error: unknown) => {
      log.flush();
      throw explainStart(error, config);
    },
  );
  configureLog(config, server);
  releaseWhenQuiet(server, config.mode);
  const stop = handleSignals(server, log, config.lameDuckSeconds, endsWithParent() ? launcher : undefined);
  const { baseUrl, url, port } = server;
  log.info("listening", {
    url,
    port,
    base_url: baseUrl,
    mode: config.mode,
    version: packageJson.version,
    docs: `${url}/docs`,
  });
  for (const warning of config.warnings) log.warn("configuration", { detail: warning });
  watchConfigFile({ config, server, log, secrets, reloaded: (changed) => configureLog(changed, server) });
  if (face) {
    face.show(server, stop);
    return;
  }
  const found = await server.localServers;
  // An unresponsive model server must not delay the banner with the key and the address.
  await Promise.race([server.catalog.whenComplete(), Bun.sleep(firstPollMs)]);
  log.plain(banner(config, server, found, context.terminal.out, server.setupLink));
  logStart(log, config, server, found);
}

function wantsJson(flags: Record<string, unknown>, context: CliContext): boolean {
  return (flags["logFormat"] ?? context.env["HEADRACE_LOG_FORMAT"]) === "json";
}

/** Logs a failed start as a JSON line, for programs that read the log. Returns the exit code. */
function failAsJson(error: unknown, context: CliContext): number {
  const lines: string[] = [];
  const code = reportError(error, { ...context.terminal, note: (line) => void lines.push(Bun.stripANSI(line)) });
  const log = new StreamLog("json");
  log.error("start_failed", { detail: lines.join("\n") });
  log.flush();
  return code;
}

function explainStart(error: unknown, config: Config): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (code === "EADDRINUSE") {
    return new CliError(
      `Port ${config.port} on ${config.host} is in use, perhaps by another Headrace. Stop that, or choose another port: --port 7546, or --port 0 for any free one.`,
    );
  }
  if (code === "EACCES" || code === "EROFS") {
    return new CliError(
      `${describe(error)}. The data directory ${config.dataDir} must be writable; choose another with --data-dir.`,
    );
  }
  return error;
}

function logStart(log: StreamLog, config: Config, server: RunningServer, found: readonly FoundServer[]): void {
  if (config.logFormat !== "json") return;
  log.info("models", {
    models: server.catalog
      .list()
      .map((model) => model.id)
      .join(","),
  });
  // The key stays out of the log, which other users may read. The file is readable by its owner only.
  if (server.firstKey.key !== undefined) {
    const { prefix, last4 } = server.firstKey.record;
    log.info("first_key", { key: `${prefix}…${last4}`, file: credentialsPath(config.dataDir) });
  }
  if (server.setupLink !== undefined) {
    log.info("no_sign_in_yet", { detail: "headrace setup-link makes the link with which the first person signs up" });
  }
  for (const { title, url } of found)
    log.info("local_server_found", { title, url, served: config.mode === "development" });
}

/** Stops the server when a signal arrives, or when the process `launcher` ends, if given. */
function handleSignals(
  server: RunningServer,
  log: StreamLog,
  lameDuckSeconds: number,
  launcher: number | undefined,
): (signal: string) => Promise<void> {
  let firstMs: number | undefined;
  const stop = async (signal: string) => {
    if (firstMs !== undefined) {
      if (performance.now() - firstMs < secondSignalMs) return;
      log.warn("stopped_at_once", { signal });
      log.close();
      process.exit(1);
    }
    firstMs = performance.now();
    log.info("stopping", { signal, lame_duck_seconds: lameDuckSeconds, drain_seconds: drainMs / 1000 });
    await server.close(drainMs, lameDuckSeconds * 1000);
    log.info("stopped");
    log.close();
    process.exit();
  };
  process.on("SIGTERM", () => void stop("SIGTERM"));
  process.on("SIGINT", () => void stop("SIGINT"));
  if (process.stdout.isTTY) process.on("SIGHUP", () => void stop("SIGHUP"));
  if (launcher !== undefined) {
    setInterval(() => {
      if (process.ppid !== launcher) void stop("launcher_gone");
    }, watchMs);
  }
  return stop;
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
