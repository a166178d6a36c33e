// Checks the structure of the house: layers, cycles, sizes of folders, where the time is read, and how its prose begins.
import { join } from "node:path";
import { checkCycles } from "./house/cycles.ts";
import { checkFolders } from "./house/folders.ts";
import { readSources } from "./house/imports.ts";
import { checkLayers } from "./house/layers.ts";
import { crowded, cycles, headless, readTime } from "./house/owed.ts";
import { checkProse } from "./house/prose.ts";
import { layers, timeRooms } from "./house/table.ts";
import { checkTime } from "./house/time.ts";

const root = join(import.meta.dir, "..");
const files = readSources(root, ["src", "web"]);
const findings = [
  ...checkLayers(files, layers),
  ...checkCycles(files, cycles),
  ...checkFolders(files, crowded),
  ...checkTime(
    files.filter(({ path }) => path.startsWith("src/")),
    timeRooms,
    readTime,
  ),
  ...checkProse([...files, ...readSources(root, ["bench", "scripts", "tests"])], headless),
];
for (const finding of findings) console.error(finding);
process.exit(findings.length === 0 ? 0 : 1);
