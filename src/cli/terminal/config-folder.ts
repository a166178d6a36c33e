// Finds the user's settings folder on this machine.
import { join } from "node:path";
import { homeDirectory } from "../../installation/home.ts";
import type { Env } from "./terminal.ts";

/** Returns the folder for a user's settings: the XDG base directory, or its equivalent on macOS and Windows. */
export function configFolder(env: Env, platform: NodeJS.Platform = process.platform): string {
  const { XDG_CONFIG_HOME: xdg, APPDATA } = env;
  const home = homeDirectory(env);
  if (platform === "win32") return join(APPDATA || join(home, "AppData", "Roaming"), "headrace");
  // The XDG specification says to ignore relative values.
  if (xdg?.startsWith("/")) return join(xdg, "headrace");
  if (platform === "darwin") return join(home, "Library", "Application Support", "headrace");
  return join(home, ".config", "headrace");
}
