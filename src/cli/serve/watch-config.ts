// Follows the configuration file of a running server: reads the file again after a complete change, and on SIGHUP.
import { statSync } from "node:fs";
import type { Log } from "../../base/log.ts";
import {
  type Config,
  ConfigError,
  keysThatNeedRestart,
  type ReloadableConfig,
  readConfigFile,
  type SecretValues,
} from "../../config/config.ts";
import type { RunningServer } from "../../server/serve.ts";

/** Milliseconds between polls. A change of the file is complete when two polls in a row see the same file. */
const pollMs = 500;

export interface WatchOptions {
  config: Config;
  server: RunningServer;
  log: Log;
  /** The secrets that the configuration refers to. */
  secrets: SecretValues;
  /** Called with each accepted configuration. */
  reloaded(changed: ReloadableConfig): void;
}

/**
 * Watches the configuration file of a running server. If the file is invalid or empty, the running configuration stays.
 * Some tools empty a file before they write it, and a full disk may leave it empty. If a secret that the file refers to
 * changes, the file is read again too.
 */
export function watchConfigFile({ config, server, log, secrets, reloaded }: WatchOptions): void {
  const { path } = config.file;
  let isRunningEmpty = config.file.isEmpty;
  const reloadOnce = async () => {
    try {
      const changed = await readConfigFile({ path, secrets });
      if (changed.isEmpty && !isRunningEmpty) throw emptied(path);
      const restart = keysThatNeedRestart(config, changed);
      await server.reload(changed, restart);
      isRunningEmpty = changed.isEmpty;
      reloaded(changed);
      log.info("configuration_reloaded", { file: path, models: server.catalog.list().length });
      for (const warning of changed.warnings) log.warn("configuration", { detail: warning });
      if (restart.length > 0) log.warn("configuration_needs_restart", { keys: restart.join(",") });
    } catch (error) {
      const { message, stack = message } = error instanceof Error ? error : new Error(String(error));
      server.reloadRefused(message);
      log.error("configuration_refused", { detail: error instanceof ConfigError ? message : stack });
    }
  };
  let reloading = Promise.resolve();
  // Reloads run one at a time, so that no older value of a secret comes after a newer one.
  const reload = () => {
    reloading = reloading.then(reloadOnce);
  };
  const readSecrets = async (now = false) => {
    const { file, variables, turned } = await secrets.poll(now);
    for (const { name, failure } of turned) {
      if (failure === undefined) log.info("secret_current", { secret: name });
      else log.warn("secret_old", { secret: name, detail: failure });
    }
    if (variables.length > 0) log.warn("configuration_needs_restart", { keys: variables.join(",") });
    if (now || file.length > 0) reload();
  };
  // In a terminal, SIGHUP means that the terminal was closed, and not that the file should be reloaded.
  if (!process.stdout.isTTY) process.on("SIGHUP", () => void readSecrets(true));
  let taken = mark(path);
  let seen = taken;
  setInterval(() => {
    void readSecrets();
    const now = mark(path);
    const isComplete = now === seen;
    seen = now;
    // A missing file is being replaced, or was removed. In both cases the running configuration stays.
    if (!isComplete || now === taken || now === undefined) return;
    taken = now;
    reload();
  }, pollMs);
}

function emptied(file: string): ConfigError {
  return new ConfigError([
    {
      ...{ file, line: 1, column: 1, path: "" },
      message: "the file is empty, so what it said before stays in use",
      fix: "Write the configuration again. A file that is to say nothing holds {}.",
    },
  ]);
}

/** Returns the file's modification time, size and inode as a text to compare; undefined if there is no file. */
function mark(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}
