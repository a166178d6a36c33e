// The whole configuration of a client that has no other.
import type { ClientFile } from "./clients.ts";
import { settingsFormats, withSettings } from "./settings-text.ts";

/** What its configuration would be if it had none. */
export function configurationOf<To>(file: ClientFile<To>, target: To): string {
  return withSettings(settingsFormats[file.format], "", file.settings(target));
}
