// Reads the log settings from the configuration: the level, and the secrets that must never be logged.

import type { Config, ReloadableConfig } from "../config/config.ts";
import { configuredSecrets } from "../config/secrets.ts";
import { redactCredentials, redactSecrets } from "../domain/redaction.ts";
import type { LogSettings } from "./logging.ts";

/** `engines` have credentials that operators added at run time. `external` are the values of referenced secrets. */
export function logSettings(
  config: Config,
  reloaded: ReloadableConfig,
  engines?: { redact(text: string): string },
  external: readonly string[] = [],
): Required<LogSettings> {
  const secrets = [...configuredSecrets(config, reloaded), ...external];
  return {
    level: config.logLevel ?? reloaded.logs.level,
    redact: (text) => redactCredentials(redactSecrets(engines ? engines.redact(text) : text, secrets)),
  };
}
