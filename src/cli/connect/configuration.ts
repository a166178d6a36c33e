// The text of a whole configuration, for a client that has none yet.
import type { ClientFile } from "./clients.ts";
import { settingsFormats, withSettings } from "./settings-text.ts";

/** Returns the client's configuration, as if it had none before. */
export function configurationOf<To>(file: ClientFile<To>, target: To): string {
  return withSettings(settingsFormats[file.format], "", file.settings(target));
}
