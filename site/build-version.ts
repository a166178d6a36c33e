// Builds one version of the site: its pages are laid out as the generator wants them, which then makes HTML of them.
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "vitepress";
import type { Version, VersionOptions } from "./config.ts";
import { readSite } from "./pages.ts";

export interface VersionOrder {
  /** A repository, or what it was at a tag. */
  root: string;
  version: Version;
  versions: readonly Version[];
  out: string;
}

const home = join(import.meta.dir, "..");
const order = JSON.parse(process.argv[2] ?? "") as VersionOrder;
// Within this repository, as its packages are to be found from there.
const stage = join(home, "dist", `docs-source.${process.pid}`);
try {
  layOut();
  await build(stage);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
// The generator's bundler leaves a process behind that would keep this one for some ten seconds.
process.exit(0);

function layOut(): void {
  const { root, version } = order;
  const { pages, navigation, files } = readSite(root);
  for (const { path, text, source } of pages) write(path, withFrontMatter(text, source, path));
  for (const name of readdirSync(join(root, "docs")).filter((file) => /\.(?:svg|png)$/.test(file)))
    cpSync(join(root, "docs", name), join(stage, name));
  for (const file of files) {
    mkdirSync(dirname(join(stage, "public", "files", file)), { recursive: true });
    cpSync(join(root, file), join(stage, "public", "files", file));
  }
  cpSync(join(home, "src", "http", "pages", "assets", "logo.svg"), join(stage, "public", "logo.svg"));
  const options: VersionOptions = {
    ...order,
    base: version.base,
    sources: Object.fromEntries(pages.map(({ path, source }) => [path, source])),
    files,
    navigation,
  };
  const own = JSON.stringify(join(home, "site"));
  write(
    ".vitepress/config.mts",
    `import { siteConfig } from ${own.slice(0, -1)}/config.ts";\nexport default siteConfig(${JSON.stringify(options)});\n`,
  );
  write(".vitepress/theme/index.ts", `export { theme as default } from ${own.slice(0, -1)}/theme/theme.ts";\n`);
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(stage, path)), { recursive: true });
  writeFileSync(join(stage, path), text);
}

/** What the generator has to know of a page and cannot see in it. */
function withFrontMatter(text: string, source: string, path: string): string {
  const lines = [];
  // Long lists of names of tests and files drown what is looked for.
  if (path === "reference/hardening.md" || source.endsWith("/")) lines.push("search: false");
  // Their tables are wide, and have few headings for a list beside them.
  if (path.startsWith("reference/")) lines.push("aside: false");
  return lines.length > 0 ? `---\n${lines.join("\n")}\n---\n\n${text}` : text;
}
