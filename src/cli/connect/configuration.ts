// The text of a whole configuration file, for a client that has no such file yet.
import type { ClientFile } from "./clients.ts";
import { settingsFormats, withSettings } from "./settings-text.ts";

/** Returns the text of a new configuration file with the settings for this target. */
export function configurationOf<To>(file: ClientFile<To>, target: To): string {
  return withSettings(settingsFormats[file.format], "", file.settings(target));
}
