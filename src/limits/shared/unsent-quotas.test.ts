import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { UnsentQuotas } from "./unsent-quotas.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-untold-"));

afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("logs that the disk keeps a list of quotas that the store knows", () => {
  const spool = mkdtempSync(join(directory, "stuck-"));
  const logged: string[] = [];
  const unsent = new UnsentQuotas(spool, "q:", { error: (event) => void logged.push(event) }, manualClock());
  unsent.add(["q:1"]);
  rmSync(join(spool, "untold-quotas"));
  mkdirSync(join(spool, "untold-quotas"));
  unsent.clear();
  expect(logged).toEqual(["untold_quotas_failed"]);
});

test("writes the unwritten list of quotas once the disk accepts it, and logs the failure once", () => {
  const spool = join(directory, "spool");
  const logged: string[] = [];
  const log = { error: (event: string) => void logged.push(event) };
  const clock = manualClock();
  const unsent = new UnsentQuotas(spool, "q:", log, clock);
  unsent.add(["q:1"]);
  unsent.add(["q:2"]);
  mkdirSync(spool);
  unsent.add(["q:3"]);
  expect(logged).toEqual(["untold_quotas_failed"]);
  clock.advance(1_000);
  // One that was added before is enough to try again.
  unsent.add(["q:1"]);
  expect([...new UnsentQuotas(spool, "q:", log, clock).keys]).toEqual(["q:1", "q:2", "q:3"]);
  unsent.clear();
  expect(() => readFileSync(join(spool, "untold-quotas"))).toThrow("ENOENT");
  expect(logged).toHaveLength(1);
});
