import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deleteNodeReport, readNodeReport, writeNodeReport } from "./node-files.ts";

test("reads the report of a node until the report is deleted, once or again", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-node-files-"));
  const report = { node_id: "node_1", status: "connected", message: "Connected.", since: 1, models: [] } as const;
  writeNodeReport(dataDir, { ...report, models: [] });
  expect(readNodeReport(dataDir)).toEqual({ ...report, models: [] });
  for (let times = 0; times < 2; times++) deleteNodeReport(dataDir);
  expect(readNodeReport(dataDir)).toBeUndefined();
  rmSync(dataDir, { recursive: true });
});
