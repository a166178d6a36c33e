// The time that is in what is published: that of the commit, so that the same sources give the same bytes.
import { join } from "node:path";

/** In Unix seconds: SOURCE_DATE_EPOCH, else that of the commit; 0 where nobody knows it, as of an archive of the sources. */
export function modifiedAt(): number {
  const told = process.env["SOURCE_DATE_EPOCH"];
  if (told) return Number(told);
  const git = ["git", "log", "-1", "--format=%ct"];
  return Number(Bun.spawnSync(git, { cwd: join(import.meta.dir, "..", ".."), stderr: "ignore" }).stdout.toString());
}
