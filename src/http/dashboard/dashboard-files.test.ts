// Tests which files of the dashboard's build are served, and in which encoding.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DashboardFiles } from "./dashboard-files.ts";

const directory = mkdtempSync(join(tmpdir(), "dashboard-files-"));
afterAll(() => rmSync(directory, { recursive: true }));

function build(script: string, mtime: number): void {
  writeFileSync(
    join(directory, "manifest.json"),
    JSON.stringify({ script, style: "main-1.css", parts: ["root-1.js"] }),
  );
  utimesSync(join(directory, "manifest.json"), mtime, mtime);
  for (const name of [script, "main-1.css"]) {
    for (const ending of ["", ".gz", ".br"]) writeFileSync(join(directory, name + ending), `${name}${ending}`);
  }
}

const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

test("lists no entries without a dashboard build, and notices a new build", async () => {
  const files = new DashboardFiles(join(directory, "none"));
  expect(await files.entries()).toBeUndefined();
  const built = new DashboardFiles(directory);
  build("main-a1.js", 1000);
  expect(await built.entries()).toEqual({ script: "main-a1.js", style: "main-1.css", parts: ["root-1.js"] });
  build("main-b2.js", 2000);
  expect(await built.entries()).toEqual({ script: "main-b2.js", style: "main-1.css", parts: ["root-1.js"] });
});

test.each([
  ["gzip, deflate, br, zstd", "br", "main-a1.js.br"],
  ["GZIP", "gzip", "main-a1.js.gz"],
  ["br;q=0, gzip;q=0.5", "gzip", "main-a1.js.gz"],
  ["br;q=0.0", undefined, "main-a1.js"],
  ["identity", undefined, "main-a1.js"],
  [null, undefined, "main-a1.js"],
])("answers accept-encoding %p with the variant %p", async (accepted, encoding, content) => {
  build("main-a1.js", 1000);
  const file = await new DashboardFiles(directory).find("main-a1.js", accepted);
  expect([file?.encoding, text(file?.bytes)]).toEqual([encoding, content]);
  expect(file?.type).toBe("text/javascript; charset=utf-8");
});

test.each([
  "manifest.json",
  "main-a1.js.br",
  "../package.json",
  "..%2Fpackage.js",
  ".built-from",
  "",
  "main-a1.js/",
  "MAIN-A9.js",
  `${"a".repeat(200)}.js`,
])("serves no file that the page does not load: %p", async (name) => {
  expect(await new DashboardFiles(directory).find(name, null)).toBeUndefined();
});
