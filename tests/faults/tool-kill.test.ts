// `kill -9` in the middle of calls of tools: each that may have reached its server is on the ledger once, at its price.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, until } from "../support/headrace.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-tool-kill-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("books tool calls reported as begun before kill -9 once, and ended ones as they ended", async () => {
  const dataDir = join(directory, "data");
  const main = join(import.meta.dir, "..", "support", "tool-calls-process.ts");
  const child = Bun.spawn([process.execPath, main, dataDir], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  let text = "";
  const reading = (async () => {
    for await (const bytes of child.stdout) text += Buffer.from(bytes).toString();
  })();
  const reported = (what: string) => text.split("\n").filter((line) => line.startsWith(`${what} `));
  try {
    await until(() => reported("ended").length >= 200, "many calls have ended", 20_000);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
  await reading;
  // The last line may have been cut off.
  const ids = (what: string) =>
    reported(what)
      .filter((line) => line.length === `${what} req_`.length + 36)
      .map((line) => line.slice(6));
  const [begun, ended] = [ids("begun"), ids("ended")];
  await using server = await startHeadrace({ dataDir });
  await server.governance.ledger.flush();
  using db = new Database(join(dataDir, "headrace.db"), { readonly: true });
  const rows = db.query("SELECT request_id, operation, outcome, nano_usd FROM usage_records").all() as {
    request_id: string;
    operation: string;
    outcome: string;
    nano_usd: number;
  }[];
  expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(rows.length);
  const outcomes = new Map(rows.map(({ request_id, outcome }) => [request_id, outcome]));
  for (const id of ended) expect(outcomes.get(id)).toBe("completed");
  for (const id of begun) expect(outcomes.has(id)).toBe(true);
  expect(rows.filter(({ outcome }) => outcome === "interrupted").length).toBeGreaterThanOrEqual(8);
  // Those in the middle of which it died are charged as well, but for one that had begun in that very moment.
  const charged = new Set([...ended, ...begun.slice(0, 8)]);
  for (const { request_id, operation, nano_usd } of rows) {
    expect(operation).toBe("tool");
    if (charged.has(request_id)) expect(nano_usd).toBe(3_000_000);
  }
}, 60_000);
