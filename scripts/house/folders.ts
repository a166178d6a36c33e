// How many files lie flat in a folder: beyond a couple of dozen nobody knows the neighbours any more.
import { dirname } from "node:path";
import { isTest, type SourceFile } from "./imports.ts";

const maxFiles = 25;

/** One line for each folder with more product files than `maxFiles`, or than `crowded` grants it for now. */
export function checkFolders(files: readonly SourceFile[], crowded: Readonly<Record<string, number>>): string[] {
  const counts = new Map<string, number>();
  for (const file of files) {
    if (isTest(file)) continue;
    const folder = dirname(file.path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].flatMap(([folder, count]) => {
    const granted = crowded[folder];
    if (count > (granted ?? maxFiles)) {
      return `${folder}: has ${count} files, and may have ${granted ?? maxFiles}. Put those that belong together into a folder of their own.`;
    }
    // What was won is kept.
    if (granted !== undefined && count < granted)
      return `${folder}: has ${count} files: its grant of ${granted} in scripts/house/owed.ts goes down to that.`;
    return [];
  });
}
