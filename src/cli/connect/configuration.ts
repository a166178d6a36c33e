// The whole configuration of a client that has no other.
import type { ClientFile, Target } from "./clients.ts";
import { settingsFormats, withSettings } from "./settings-text.ts";

/** What its configuration would be if it had none. */
export function configurationOf(file: ClientFile, target: Target): string {
  return withSettings(settingsFormats[file.format], "", file.settings(target));
}
