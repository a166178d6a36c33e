// Tables as the pages' policy and people who listen to them need them: aligned by classes, and no header without a word.
import type { MarkdownRenderer } from "vitepress";

export function mendTables(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("tables", ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      // A policy without inline styles takes no attribute of style.
      const align = /^text-align:\s*(\w+)$/.exec(token.attrGet("style") ?? "")?.[1];
      if (align !== undefined) token.attrs = [["class", `align-${align}`]];
      // The corner over the names of the rows is named by nothing: it is a cell as any other.
      const isCorner = token.type === "th_open" && tokens[index + 1]?.content === "";
      for (const part of isCorner ? [token, tokens[index + 2]] : []) if (part) part.tag = "td";
    }
  });
}
