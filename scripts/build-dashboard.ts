// Builds the dashboard: web/ becomes dist/dashboard/, its files named by their content, compressed once, with a manifest.
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = join(import.meta.dir, "..");
const target = join(root, "dist", "dashboard");
const fresh = `${target}.${process.pid}`;

const built = await Bun.build({
  entrypoints: [join(root, "web", "main.ts")],
  target: "browser",
  minify: true,
  splitting: true,
  publicPath: "/assets/app/",
  naming: { entry: "[name]-[hash].[ext]", chunk: "[name]-[hash].[ext]", asset: "[name]-[hash].[ext]" },
  define: { "process.env.NODE_ENV": '"production"' },
  metafile: true,
});
rmSync(fresh, { recursive: true, force: true });
mkdirSync(fresh, { recursive: true });
const entries: { script?: string; style?: string; parts?: string[] } = {};
for (const output of built.outputs) {
  const name = basename(output.path);
  const bytes = new Uint8Array(await output.arrayBuffer());
  if (output.kind === "entry-point") entries.script = name;
  else if (name.startsWith("main-") && name.endsWith(".css")) entries.style = name;
  writeFileSync(join(fresh, name), bytes);
  writeFileSync(join(fresh, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(join(fresh, `${name}.br`), brotliCompressSync(bytes, { params: quality }));
}
if (entries.script === undefined || entries.style === undefined)
  throw new Error("The build has no script or no style.");
entries.parts = partsOfStart(entries.script);
writeFileSync(join(fresh, "manifest.json"), JSON.stringify(entries));
// A server that runs goes on with the old files, which it has in memory or finds no more: it asks again.
rmSync(target, { recursive: true, force: true });
renameSync(fresh, target);

/** What the start loads one after the other, in that order: the page names it, so that all of it is on its way at once. */
function partsOfStart(script: string): string[] {
  const outputs = new Map(
    Object.entries(built.metafile?.outputs ?? {}).map(([path, output]) => [basename(path), output]),
  );
  const parts = new Set<string>();
  const add = (name: string) => {
    if (parts.has(name) || name === script) return;
    for (const { path, kind } of outputs.get(name)?.imports ?? []) if (kind === "import-statement") add(basename(path));
    parts.add(name);
  };
  const start = [...outputs].filter(([, { entryPoint }]) => entryPoint?.startsWith("web/start/"));
  const order = ["root.ts", "appearance.tsx", "dashboard.tsx"];
  start.sort(
    ([, one], [, two]) => order.indexOf(basename(one.entryPoint ?? "")) - order.indexOf(basename(two.entryPoint ?? "")),
  );
  for (const [name] of start) add(name);
  if (start.length !== order.length) throw new Error("The start has other parts than the build knows.");
  return [...parts];
}
