// Follows the configuration file of a running server: reads the file again after a complete change, and on SIGHUP.
import { statSync } from "node:fs";
import type { Log } from "../../base/log.ts";
import {
  type Config,
  ConfigError,
  keysThatNeedRestart,
  type ReloadableConfig,
  readConfigFile,
} from "../../config/config.ts";
import type { RunningServer } from "../../server/serve.ts";

/** Milliseconds between polls. A change counts as complete once two polls in a row see the same file. */
const pollMs = 500;

export interface WatchOptions {
  config: Config;
  server: RunningServer;
  log: Log;
  /** Called with each accepted configuration. */
  reloaded(changed: ReloadableConfig): void;
}

/**
 * Watches the configuration file of a running server. An invalid or empty file is refused and the running configuration
 * stays. Tools that write a file in place empty it first, and the configuration must not vanish for that moment, or for
 * good on a full disk.
 */
export function watchConfigFile({ config, server, log, reloaded }: WatchOptions): void {
  const { path } = config.file;
  let isRunningEmpty = config.file.isEmpty;
  const reload = async () => {
    try {
      const changed = await readConfigFile({ path });
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
  // A closing terminal sends SIGHUP too, which does not mean a reload.
  if (!process.stdout.isTTY) process.on("SIGHUP", () => void reload());
  let taken = mark(path);
  let seen = taken;
  setInterval(() => {
    const now = mark(path);
    const isComplete = now === seen;
    seen = now;
    // A file that is missing for a moment is being replaced; a file that stays away changes nothing.
    if (!isComplete || now === taken || now === undefined) return;
    taken = now;
    void reload();
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

/** Returns the file's modification time, size and inode as text, or undefined if there is no file. */
function mark(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}
