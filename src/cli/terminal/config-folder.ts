// Where the settings of a person at this machine are.
import { join } from "node:path";
import { homeDirectory } from "../../installation/home.ts";
import type { Env } from "./terminal.ts";

/** Where a person's programs keep their settings: XDG Base Directory, and what macOS and Windows have in its place. */
export function configFolder(env: Env, platform: NodeJS.Platform = process.platform): string {
  const { XDG_CONFIG_HOME: xdg, APPDATA } = env;
  const home = homeDirectory(env);
  if (platform === "win32") return join(APPDATA || join(home, "AppData", "Roaming"), "headrace");
  // Relative values are to be ignored.
  if (xdg?.startsWith("/")) return join(xdg, "headrace");
  if (platform === "darwin") return join(home, "Library", "Application Support", "headrace");
  return join(home, ".config", "headrace");
}
