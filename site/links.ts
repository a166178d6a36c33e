// Links as they stand in the repository become links of the site; one that leads nowhere ends the build.
import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import type { MarkdownRenderer } from "vitepress";
import { pathOfSource } from "./pages.ts";

export interface LinkOptions {
  /** The repository. */
  root: string;
  /** The address of the site, with slashes around it. */
  base: string;
  /** The file of the repository that a page is made of, by the path of the page. */
  sources: Readonly<Record<string, string>>;
  files: readonly string[];
}

type Target = { page: string } | { file: string } | "in repository";

/** Rewrites what was parsed; text and code stay as they are. */
export function rewriteLinks(markdown: MarkdownRenderer, options: LinkOptions): void {
  markdown.core.ruler.push("links of the repository", ({ tokens, env }) => {
    const source = options.sources[env.relativePath];
    if (source === undefined) return;
    for (const token of tokens) {
      for (const [index, inline] of (token.children ?? []).entries()) {
        if (inline.type === "link_open") rewriteLink(token.children ?? [], index, source, options);
        if (inline.type === "image") inline.attrSet("src", pictureOf(inline.attrGet("src") ?? "", source));
      }
    }
  });
}

type Tokens = ReturnType<MarkdownRenderer["parse"]>;

function rewriteLink(tokens: Tokens, index: number, source: string, options: LinkOptions): void {
  const link = tokens[index];
  const href = link?.attrGet("href") ?? "";
  if (!link || /^(?:[a-z]+:|#)/.test(href)) return;
  const [path = "", anchor] = decodeURI(href).split("#");
  const target = targetOf(posix.join(posix.dirname(`${source}.`), path), options);
  if (target === undefined) throw new Error(`${source}: the link to ${href} leads nowhere.`);
  const fragment = anchor === undefined ? "" : `#${anchor}`;
  if (target === "in repository") {
    link.type = "named_open";
    link.tag = "span";
    link.attrs = [["title", "In the repository"]];
    const end = tokens.find((token, at) => at > index && token.type === "link_close");
    if (end) Object.assign(end, { type: "named_close", tag: "span" });
  } else if ("page" in target) {
    link.attrSet("href", `/${target.page}${fragment}`);
  } else {
    // With a target of its own it is left alone: no page of the generator's.
    link.attrs = [
      ["href", `${options.base}files/${target.file}`],
      ["target", "_self"],
    ];
  }
}

function targetOf(source: string, { root, files }: LinkOptions): Target | undefined {
  if (!existsSync(join(root, source))) return undefined;
  if (files.includes(source)) return { file: source };
  const page = pathOfSource(source);
  return page === undefined ? "in repository" : { page };
}

/** Pictures of docs/ lie beside the page, wherever it was before. */
function pictureOf(src: string, source: string): string {
  const from = posix.dirname(pathOfSource(source) ?? "");
  const to = posix.relative("docs", posix.join(posix.dirname(source), src));
  return `./${posix.relative(from, to)}`;
}
