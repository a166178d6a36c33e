// What the engine's library looks for beside its own files, told to it anew: bundled, it has no folder of its own.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BunPlugin } from "bun";

const places = join(import.meta.dir, "..", "..", "src", "installation", "paths.ts");

/** The back-ends stay packages of their own, which are looked for where the program is started. */
const backEnd = (name: string) => `
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageDirectory } from ${JSON.stringify(places)};
export function getBinsDir() {
  const directory = packageDirectory(${JSON.stringify(name)});
  if (directory === undefined) return undefined;
  const { version } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  return { binsDir: join(directory, "bins"), packageVersion: version };
}
`;

/** @param version of the library, which it would read from its own package.json */
export function engineLibrary(version: string): BunPlugin {
  return {
    name: "engine-library",
    setup(build) {
      build.onResolve({ filter: /^@node-llama-cpp\// }, ({ path }) => ({ path, namespace: "back-end" }));
      build.onLoad({ filter: /.*/, namespace: "back-end" }, ({ path }) => ({ loader: "js", contents: backEnd(path) }));
      // Only its downloads copy files in that way, and we have our own; its native part would bring the path of this build.
      build.onResolve({ filter: /^@reflink\/reflink/ }, ({ path }) => ({ path, namespace: "left-out" }));
      build.onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ loader: "js", contents: "export default {};" }));
      build.onLoad({ filter: /node-llama-cpp[\\/]dist[\\/]config\.js$/ }, ({ path }) => ({
        loader: "js",
        contents: replaced(path, "path.dirname(fileURLToPath(import.meta.url))", homeOfLibrary),
      }));
      build.onLoad({ filter: /node-llama-cpp[\\/]dist[\\/]utils[\\/]getModuleVersion\.js$/ }, () => ({
        loader: "js",
        contents: `export async function getModuleVersion() { return ${JSON.stringify(version)}; }`,
      }));
      // It would start a file of its own in another process; our workers are processes of their own already.
      build.onLoad({ filter: /node-llama-cpp[\\/]dist[\\/]bindings[\\/]utils[\\/]testBindingBinary\.js$/ }, () => ({
        loader: "js",
        contents: "export async function testBindingBinary() { return true; }",
      }));
    },
  };
}

/** Beside `llama/`, as `dist` is in its package; Bun.main is `app/main.js`. */
const homeOfLibrary = `path.join(path.dirname(path.dirname(Bun.main)), "dist")`;

function replaced(path: string, what: string, by: string): string {
  const text = readFileSync(path, "utf8");
  if (!text.includes(what)) throw new Error(`${path} no longer has ${what}: look at how it finds its files now.`);
  return text.replace(what, by);
}
