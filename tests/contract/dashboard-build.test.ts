// What the built dashboard consists of: the styles of the components that are in it, and parts of which none is too much for one task.
import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BuildOutput } from "bun";

const web = join(import.meta.dir, "../../web");
const largestKb = 240;

let built: BuildOutput;

beforeAll(async () => {
  built = await Bun.build({
    ...{ entrypoints: [join(web, "main.ts")], target: "browser", minify: true, splitting: true, metafile: true },
    define: { "process.env.NODE_ENV": '"production"' },
  });
});

test("includes styles of exactly the library components that the dashboard uses", () => {
  const used = new Set<string>();
  for (const { inputs } of Object.values(built.metafile?.outputs ?? {})) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const [, name] = /@mantine\/core\/.*\/([^/]+)\.module\.mjs$/.exec(path) ?? [];
      if (name !== undefined && bytesInOutput > 0) used.add(name);
    }
  }
  const list = readFileSync(join(web, "components.css"), "utf8");
  const imported = [...list.matchAll(/styles\/([A-Z]\w+)\.css/g)].map(([, name = ""]) => name);
  expect(used.size).toBeGreaterThan(20);
  expect(imported.toSorted()).toEqual([...used].toSorted());
});

test("keeps each dashboard script small enough not to block a slow machine", () => {
  const scripts = built.outputs.filter(({ path }) => path.endsWith(".js"));
  expect(scripts.length).toBeGreaterThan(5);
  for (const { path, size } of scripts) expect(size / 1000, path).toBeLessThan(largestKb);
});
