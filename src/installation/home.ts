// The home directory of the user who runs the program.
import { homedir } from "node:os";

/**
 * Returns HOME, or else the home directory in the system's user list. If the user id has no entry there, as in many
 * containers, returns the root directory, which container runtimes use too.
 */
export function homeDirectory(env: Readonly<Record<string, string | undefined>>): string {
  if (env["HOME"]) return env["HOME"];
  try {
    return homedir();
  } catch {
    return "/";
  }
}
