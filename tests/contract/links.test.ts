// Links between documents, to code and to headings lead somewhere.
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const root = join(import.meta.dir, "..", "..");
const rooms = readdirSync(join(root, "src")).filter((room) => existsSync(join(root, "src", room, "README.md")));
const folders = [".", "docs", "docs/adr", "docs/reference", "tests", ...rooms.map((room) => join("src", room))];
const pages = folders.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(root, folder, name)),
);

/** The anchors that GitHub makes: in lower case, without punctuation, blanks as hyphens. */
function anchorsOf(page: string): Set<string> {
  const text = readFileSync(page, "utf8").replace(/^```.*?^```/gms, "");
  const headings = [...text.matchAll(/^#+ +(.+)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test.each(pages.map((page) => relative(root, page)))("resolves every local link of %s", (name) => {
  const page = join(root, name);
  const text = readFileSync(page, "utf8")
    .replace(/^```.*?^```/gms, "")
    .replace(/`[^`\n]*`/g, "");
  const dead = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : join(dirname(page), path);
      if (!existsSync(file)) return true;
      return anchor !== undefined && file.endsWith(".md") && !anchorsOf(file).has(anchor);
    });
  expect(dead).toEqual([]);
});
