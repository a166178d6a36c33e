// Builds the dashboard: web/ becomes dist/dashboard/, its files named by their content, compressed once, with a manifest.
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = join(import.meta.dir, "..");
const target = join(root, "dist", "dashboard");
const fresh = `${target}.${process.pid}`;

const built = await Bun.build({
  entrypoints: [join(root, "web", "main.tsx")],
  target: "browser",
  minify: true,
  splitting: true,
  publicPath: "/assets/app/",
  naming: { entry: "[name]-[hash].[ext]", chunk: "[name]-[hash].[ext]", asset: "[name]-[hash].[ext]" },
  define: { "process.env.NODE_ENV": '"production"' },
});
rmSync(fresh, { recursive: true, force: true });
mkdirSync(fresh, { recursive: true });
const entries: { script?: string; style?: string } = {};
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
writeFileSync(join(fresh, "manifest.json"), JSON.stringify(entries));
// A server that runs goes on with the old files, which it has in memory or finds no more: it asks again.
rmSync(target, { recursive: true, force: true });
renameSync(fresh, target);
