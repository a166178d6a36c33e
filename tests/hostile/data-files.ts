// All files of a data directory, for tests that search them.
import { readdirSync } from "node:fs";
import { join } from "node:path";

export function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesIn(path) : [path];
  });
}
