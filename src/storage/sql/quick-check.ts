// Checks a SQLite file within a time limit, in a separate process because SQLite cannot be interrupted here.
import { selfCommand } from "../../installation/paths.ts";

export type QuickCheck = { state: "sound" } | { state: "damaged"; what: string } | { state: "unfinished" };

/** Runs `PRAGMA quick_check`. Rejects if the process cannot be started or the file cannot be opened. */
export async function quickCheck(file: string, timeoutMs: number): Promise<QuickCheck> {
  const child = Bun.spawn([...selfCommand("check-database"), file], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, timeoutMs);
  const [said, complaint] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  clearTimeout(timer);
  if (isLate) return { state: "unfinished" };
  const rows = said.split("\n").filter((line) => line !== "");
  if (child.exitCode !== 0 || rows.length === 0)
    throw new Error(lastLine(complaint) || "the check ended without a word");
  return rows[0] === "ok" ? { state: "sound" } : { state: "damaged", what: rows[0] ?? "" };
}

function lastLine(text: string): string {
  return (
    text
      .trim()
      .split("\n")
      .findLast((line) => /error/i.test(line))
      ?.trim() ?? ""
  );
}
