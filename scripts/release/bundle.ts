// Bundles the program with all packages that it uses into `app/`, and what it reads beside it.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { engineLibrary } from "./engine-library.ts";
import { licences } from "./licences.ts";

const root = join(import.meta.dir, "..", "..");

/** Writes all that a running server needs but Bun and the engine's back-end into `directory`, which is empty. */
export async function bundle(directory: string): Promise<void> {
  await Bun.build({
    entrypoints: ["main.ts", "storage/backup/backup-thread.ts", "storage/sql/checkpoint-thread.ts"].map((name) =>
      join(root, "src", name),
    ),
    root: join(root, "src"),
    outdir: join(directory, "app"),
    target: "bun",
    // Names stay, for who reads the stack of a fault in a log.
    minify: { whitespace: true, syntax: true, identifiers: false },
    splitting: true,
    naming: { entry: "[dir]/[name].js", chunk: "chunks/[name]-[hash].js" },
    define: { HEADRACE_BUNDLED: "true", "process.env.NODE_ENV": '"production"' },
    external: ["electron", "typescript"],
    plugins: [engineLibrary(packageJson.dependencies["node-llama-cpp"])],
  });
  copyFiles(directory);
}

function copyFiles(directory: string): void {
  const library = join("node_modules", "node-llama-cpp", "llama");
  const files: [from: string, to: string][] = [
    [join("src", "http", "pages", "assets"), "assets"],
    [
      join("node_modules", "@simplewebauthn", "browser", "dist", "bundle", "index.umd.min.js"),
      "assets/simplewebauthn.js",
    ],
    [join("src", "prices", "vendor-prices.json"), "assets/vendor-prices.json"],
    [join("models", "tiny-demo", "tiny-demo.gguf"), "models/tiny-demo/tiny-demo.gguf"],
    [join(library, "binariesGithubRelease.json"), "llama/binariesGithubRelease.json"],
    [join(library, "llama.cpp.info.json"), "llama/llama.cpp.info.json"],
    [join(library, "grammars"), "llama/grammars"],
    [join("dist", "dashboard"), "dist/dashboard"],
    [join("dist", "docs"), "dist/docs"],
    ["LICENSE", "LICENSE"],
    ["README.md", "README.md"],
  ];
  for (const [from, to] of files) cpSync(join(root, from), join(directory, to), { recursive: true });
  mkdirSync(join(directory, "llama"), { recursive: true });
  writeFileSync(join(directory, "llama", "lock.json"), runtimeLock());
  writeFileSync(join(directory, "THIRD-PARTY-LICENSES"), licences());
}

interface LockEntry {
  dev?: boolean;
}

/** The lock file without what only development needs: npm packs none of that name, and back-ends are installed by it. */
function runtimeLock(): string {
  const lock: { packages: Record<string, LockEntry> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const packages = Object.entries(lock.packages).filter(([path, { dev }]) => path !== "" && dev !== true);
  return JSON.stringify({ packages: Object.fromEntries(packages) });
}
