// The home directory of the user who runs the program.
import { homedir } from "node:os";

/**
 * Returns HOME, or the directory in the system's user list. For a user id without an entry, as in a container, the
 * result is the root directory, as container runtimes have it.
 */
export function homeDirectory(env: Readonly<Record<string, string | undefined>>): string {
  if (env["HOME"]) return env["HOME"];
  try {
    return homedir();
  } catch {
    return "/";
  }
}
