// Reads the log settings from the configuration: the level, and the secrets that must never be logged.

import type { Config, ReloadableConfig } from "../config/config.ts";
import { configuredSecrets } from "../config/secrets.ts";
import { redactCredentials, redactSecrets } from "../domain/redaction.ts";
import type { LogSettings } from "./logging.ts";

/** `engines` have credentials that operators added at run time. */
export function logSettings(
  config: Config,
  reloaded: ReloadableConfig,
  engines?: { redact(text: string): string },
): Required<LogSettings> {
  const secrets = configuredSecrets(config, reloaded);
  return {
    level: config.logLevel ?? reloaded.logs.level,
    redact: (text) => redactCredentials(redactSecrets(engines ? engines.redact(text) : text, secrets)),
  };
}
