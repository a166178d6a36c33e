// Which pages the site has, where each stands, and of which file of the repository it is made.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { readNavigation, type Section } from "./navigation.ts";

export interface Page {
  /** Below the address of the site, as Markdown: `adr/0001-x.md`. */
  path: string;
  /** From the root of the repository: what its links start from. */
  source: string;
  text: string;
}

export interface Site {
  pages: readonly Page[];
  navigation: readonly Section[];
  /** Files that are given out as they are, from the root of the repository. */
  files: readonly string[];
}

/** Documents outside of docs/. */
const others: Readonly<Record<string, string>> = {
  "README.md": "getting-started.md",
  "ARCHITECTURE.md": "architecture.md",
  "CHANGELOG.md": "changes.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security.md",
  "models/tiny-demo/MODEL_CARD.md": "tiny-demo.md",
};
/** What readers take along. Sources of the program stay in the repository. */
const givenFolders = ["deploy", "examples"];
const givenFiles = ["LICENSE", "docs/reference/headrace.schema.json", "docs/reference/openapi.json"];
/** Parts of the README that the site says by itself. */
const notForStrangers = new Set(["Where to read on", "Licence"]);

/** Where the page made of a file or folder is; undefined where there is none. */
export function pathOfSource(source: string): string | undefined {
  if (source === "docs/README.md" || source === "docs/") return "index.md";
  if (others[source] !== undefined) return others[source];
  if (/^docs\/.*\.md$/.test(source)) return source.slice("docs/".length);
  if (source.replace(/\/$/, "") === "docs/adr") return "adr/index.md";
  if (isGivenFolder(source)) return `files/${source.replace(/\/$/, "")}/index.md`;
  return undefined;
}

function isGivenFolder(source: string): boolean {
  return givenFolders.includes(source.split("/")[0] ?? "") && !posix.basename(source).includes(".");
}

/** All of the site of the repository at `root`. Throws where a page is in no section, or a section names none. */
export function readSite(root: string): Site {
  const read = (source: string) => readFileSync(join(root, source), "utf8");
  const below = (folder: string) =>
    existsSync(join(root, folder))
      ? readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => posix.join(folder, posix.relative(join(root, folder), join(entry.parentPath, entry.name))))
          .sort()
      : [];
  const guides = below("docs").filter((source) => source.endsWith(".md"));
  const pages = [...guides, ...Object.keys(others).filter((source) => existsSync(join(root, source)))].map(
    (source) => ({
      path: pathOfSource(source) ?? "",
      source,
      text: source === "README.md" ? forStrangers(read(source)) : read(source),
    }),
  );
  const files = [...givenFolders.flatMap(below), ...givenFiles.filter((file) => existsSync(join(root, file)))];
  const navigation = readNavigation(read("docs/README.md"));
  const decisions = pages.filter(({ source }) => source.startsWith("docs/adr/"));
  if (decisions.length > 0) pages.push(listOfDecisions(decisions));
  requireEachListed(pages, navigation);
  return { pages: [...pages, ...listsOfFiles(files)], navigation, files };
}

/** The first heading. */
export function titleOf({ text, source }: Page): string {
  const title = /^# +(.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${source} has no title: it needs a line that begins with "# ".`);
  return title;
}

function forStrangers(readme: string): string {
  const [start = "", ...parts] = readme.split(/^(?=## )/m);
  const kept = parts.filter((part) => !notForStrangers.has(/^## (.+)$/m.exec(part)?.[1] ?? ""));
  return [start.replace(/^# .+$/m, "# Getting started"), ...kept].join("");
}

function listOfDecisions(decisions: readonly Page[]): Page {
  const lines = decisions.map((page) => `- [${titleOf(page)}](${posix.basename(page.source)})`);
  return { path: "adr/index.md", source: "docs/adr/", text: `# Decisions\n\n${lines.join("\n")}\n` };
}

/** A page for each folder of the files that are given out. */
function listsOfFiles(files: readonly string[]): Page[] {
  const inFolders = files.filter((file) => givenFolders.includes(file.split("/")[0] ?? ""));
  const folders = [...new Set(inFolders.map((file) => posix.dirname(file)))];
  return folders.map((folder) => {
    const lines = inFolders
      .filter((file) => file.startsWith(`${folder}/`))
      .map((file) => `- [${posix.relative(folder, file)}](${posix.relative(folder, file)})`);
    return {
      path: `files/${folder}/index.md`,
      source: `${folder}/`,
      text: `# Files in ${folder}\n\n${lines.join("\n")}\n`,
    };
  });
}

function requireEachListed(pages: readonly Page[], navigation: readonly Section[]): void {
  const listed = new Set(navigation.flatMap(({ entries }) => entries.map(({ source }) => source)));
  const known = new Set(pages.map(({ source }) => source));
  const unknown = [...listed].filter((source) => !known.has(source));
  if (unknown.length > 0) throw new Error(`docs/README.md lists what is not there: ${unknown.join(", ")}.`);
  const lost = pages.filter(
    ({ source, path }) =>
      !listed.has(source) && path !== "index.md" && path !== "tiny-demo.md" && !/^adr\/\d/.test(path),
  );
  if (lost.length > 0)
    throw new Error(
      `docs/README.md has no line for ${lost.map(({ source }) => source).join(", ")}: give each one under who reads it.`,
    );
}
