// The sockets of a server that was killed are removed by the next one on its data directory, and by no other.
import { expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../tests/support/headrace.ts";
import { removeLeftSockets, socketDirectory } from "./sockets.ts";

test("removes sockets of a killed server, and spares those of a copied data directory", () => {
  const base = mkdtempSync(join(tmpdir(), "headrace-test-"));
  const [data, copy] = [join(base, "data"), join(base, "copy")];
  mkdirSync(data);
  const left = socketDirectory(data);
  cpSync(data, copy, { recursive: true });
  removeLeftSockets(copy);
  expect(existsSync(left.path)).toBe(true);
  removeLeftSockets(data);
  expect(existsSync(left.path)).toBe(false);
  const next = socketDirectory(data);
  next.close();
  expect([next.path, join(data, "worker-sockets")].filter((path) => existsSync(path))).toEqual([]);
  rmSync(base, { recursive: true });
});

test("keeps the files of the sockets' directory new, so that no cleaner of temporary files deletes them", async () => {
  const data = mkdtempSync(join(tmpdir(), "headrace-test-"));
  const sockets = socketDirectory(data, 5);
  const file = join(sockets.path, "changes");
  writeFileSync(file, "");
  const long = 1_000_000_000;
  utimesSync(file, long, long);
  await until(() => [statSync(file).atimeMs, statSync(file).mtimeMs].every((ms) => ms > long * 1000), "it is touched");
  sockets.close();
  rmSync(data, { recursive: true });
});
