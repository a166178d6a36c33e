// The home directory of who runs the program.
import { homedir } from "node:os";

/**
 * HOME, else what the users of the system say. A number that is no user of it, as in a container, has none: then it is the
 * root, as container runtimes give it.
 */
export function homeDirectory(env: Readonly<Record<string, string | undefined>>): string {
  if (env["HOME"]) return env["HOME"];
  try {
    return homedir();
  } catch {
    return "/";
  }
}
