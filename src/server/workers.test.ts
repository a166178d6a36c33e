// The sockets of a server that was killed are removed by the next one on its data directory, and by no other.
import { expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeLeftSockets, socketDirectory } from "./workers.ts";

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
