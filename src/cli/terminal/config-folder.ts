// Where the settings of a person at this machine are.
import { homedir } from "node:os";
import { join } from "node:path";
import type { Env } from "./terminal.ts";

/** Where a person's programs keep their settings: XDG Base Directory, and what macOS and Windows have in its place. */
export function configFolder(env: Env, platform: NodeJS.Platform = process.platform): string {
  const { XDG_CONFIG_HOME: xdg, HOME, APPDATA } = env;
  const home = HOME || homedir();
  if (platform === "win32") return join(APPDATA || join(homedir(), "AppData", "Roaming"), "headrace");
  // Relative values are to be ignored.
  if (xdg?.startsWith("/")) return join(xdg, "headrace");
  if (platform === "darwin") return join(home, "Library", "Application Support", "headrace");
  return join(home, ".config", "headrace");
}
