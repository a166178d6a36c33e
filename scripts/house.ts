// Checks the structure of the house: layers, cycles, sizes of folders, where the time is read, how money is added, the Lua that Redis runs, tests and prose.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { limitScripts } from "../src/limits/shared/limit-scripts.ts";
import { checkCycles } from "./house/cycles.ts";
import { checkFolders } from "./house/folders.ts";
import { readSources } from "./house/imports.ts";
import { checkLayers } from "./house/layers.ts";
import { checkLua } from "./house/lua.ts";
import { checkMoney } from "./house/money.ts";
import { crowded, cycles, headless, insideTests, readTime } from "./house/owed.ts";
import { checkProse } from "./house/prose.ts";
import { layers, moneyRooms, timeRooms } from "./house/table.ts";
import { checkTests } from "./house/tests.ts";
import { checkTime } from "./house/time.ts";

const root = join(import.meta.dir, "..");
const files = readSources(root, ["src", "web"]);
const lua = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".lua"))
  .map((name) => ({ path: `src/${name}`, text: readFileSync(join(root, "src", name), "utf8") }));
const findings = [
  ...checkLayers(files, layers),
  ...checkCycles(files, cycles),
  ...checkFolders(files, crowded),
  ...checkTime(
    files.filter(({ path }) => path.startsWith("src/")),
    timeRooms,
    readTime,
  ),
  ...checkMoney(files, moneyRooms),
  ...checkProse([...files, ...readSources(root, ["bench", "scripts", "site", "tests"])], headless),
  ...checkLua(lua, Object.values(limitScripts)),
  ...checkTests(files, insideTests),
];
for (const finding of findings) console.error(finding);
process.exit(findings.length === 0 ? 0 : 1);
