// Checks the structure of the house: layers, cycles, sizes of folders, where the time is read, how money is added, the Lua that Redis runs, what outlives a request, tests, prose and paths in documents. With --lower, grants of comments that are higher than needed are lowered first.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { longLivedKinds } from "../src/base/long-lived.ts";
import { limitScripts } from "../src/limits/shared/limit-scripts.ts";
import { checkComments, countedRooms, grantsText, readGrants } from "./house/comments.ts";
import { checkCycles } from "./house/cycles.ts";
import { checkDocuments } from "./house/documents.ts";
import { checkFolders } from "./house/folders.ts";
import { readSources } from "./house/imports.ts";
import { checkLayers } from "./house/layers.ts";
import { checkLongLived } from "./house/long-lived.ts";
import { checkLua } from "./house/lua.ts";
import { checkMoney } from "./house/money.ts";
import { crowded, cycles, headless, insideTests, readTime } from "./house/owed.ts";
import { checkProse } from "./house/prose.ts";
import { checkRefusedNames, checkRefusedWords, readDocuments } from "./house/refused-words.ts";
import { housekeeping, layers, moneyRooms, timeRooms } from "./house/table.ts";
import { checkTests } from "./house/tests.ts";
import { checkTime } from "./house/time.ts";

const root = join(import.meta.dir, "..");
const files = readSources(root, ["src", "web"]);
const lua = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".lua"))
  .map((name) => ({ path: `src/${name}`, text: readFileSync(join(root, "src", name), "utf8") }));
const commentsOwed = join(root, "scripts/house/comments-owed.txt");
const openings = new Set(readFileSync(join(root, "scripts/house/openings.txt"), "utf8").split(/\s+/).filter(Boolean));
const commentRooms = countedRooms(files, openings);
const owedComments = readGrants(readFileSync(commentsOwed, "utf8"));
if (process.argv.includes("--lower")) lowerGrants();
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
  ...checkComments(commentRooms, owedComments),
  ...checkLua(lua, Object.values(limitScripts)),
  ...checkLongLived(files, longLivedKinds, housekeeping),
  ...checkTests(files, insideTests),
  ...checkDocuments(root),
  ...checkRefusedWords(files, readDocuments(root)),
  ...checkRefusedNames([...files, ...readSources(root, ["tests"])]),
];
for (const finding of findings) console.error(finding);
process.exit(findings.length === 0 ? 0 : 1);

/** Grants of comments only fall; a room without faults has none. */
function lowerGrants(): void {
  for (const [room, granted] of owedComments) {
    const found = commentRooms.get(room);
    granted.openings = Math.min(granted.openings, found?.openings.length ?? 0);
    granted.pronouns = Math.min(granted.pronouns, found?.pronouns.length ?? 0);
  }
  writeFileSync(commentsOwed, grantsText(owedComments));
}
