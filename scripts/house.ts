// Checks the structure of the house: layers, cycles, sizes of folders, and where the time is read.
import { join } from "node:path";
import { checkCycles } from "./house/cycles.ts";
import { checkFolders } from "./house/folders.ts";
import { readSources } from "./house/imports.ts";
import { checkLayers } from "./house/layers.ts";
import { crowded, cycles, readTime } from "./house/owed.ts";
import { layers, timeRooms } from "./house/table.ts";
import { checkTime } from "./house/time.ts";

const files = readSources(join(import.meta.dir, ".."), ["src", "web"]);
const findings = [
  ...checkLayers(files, layers),
  ...checkCycles(files, cycles),
  ...checkFolders(files, crowded),
  ...checkTime(
    files.filter(({ path }) => path.startsWith("src/")),
    timeRooms,
    readTime,
  ),
];
for (const finding of findings) console.error(finding);
process.exit(findings.length === 0 ? 0 : 1);
