// The package for npm: the bundle, the launcher and a package.json that names Bun and the engine's back-end alone.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { bundle } from "./bundle.ts";

const root = join(import.meta.dir, "..", "..");

/** Makes `package/` and the tarball in `release`; gives the path of the tarball. */
export async function makePackage(release: string): Promise<string> {
  const directory = join(release, "package");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  await bundle(directory);
  cpSync(join(root, "bin"), join(directory, "bin"), { recursive: true, filter: (path) => !path.endsWith(".d.mts") });
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(manifest(), undefined, 2)}\n`);
  const args = ["pack", "--json", "--ignore-scripts", "--loglevel=error"];
  const [packed] = JSON.parse(execFileSync("npm", args, { cwd: directory, encoding: "utf8" }));
  const tarball = join(release, packed.filename);
  renameSync(join(directory, packed.filename), tarball);
  return tarball;
}

function manifest(): object {
  const { name, version, description, license, author, type, bin, engines, dependencies } = packageJson;
  const lock: { packages: Record<string, { optionalDependencies?: Record<string, string> }> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const runtimes = Object.entries(lock.packages["node_modules/bun"]?.optionalDependencies ?? {});
  return {
    ...{ name, version, description, license, author, type, bin, engines },
    optionalDependencies: {
      ...Object.fromEntries(runtimes.filter(([runtime]) => /-(?:darwin|linux|windows)-(?!.*android)/.test(runtime))),
      // That for ARM says of itself that it is for x64 as well, where it would come along.
      "@node-llama-cpp/linux-x64": dependencies["node-llama-cpp"],
    },
  };
}
