// Tables as the pages' policy and their readers need them: aligned by classes, no header without a word, long names broken.
import type { MarkdownRenderer } from "vitepress";

export function mendTables(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("tables", ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      // A policy without inline styles takes no attribute of style.
      const align = /^text-align:\s*(\w+)$/.exec(token.attrGet("style") ?? "")?.[1];
      if (align !== undefined) token.attrs = [["class", `align-${align}`]];
      const content = tokens[index + 1];
      // The corner over the names of the rows is named by nothing: it is a cell as any other.
      const isCorner = token.type === "th_open" && content?.content === "";
      for (const part of isCorner ? [token, tokens[index + 2]] : []) if (part) part.tag = "td";
      for (const code of token.type === "td_open" ? (content?.children ?? []) : []) {
        if (code.type !== "code_inline") continue;
        // A long name may be broken between its words, so that the columns after it stay in sight.
        const text = markdown.utils.escapeHtml(code.content).replaceAll(/[_/]/g, "$&<wbr>");
        Object.assign(code, { type: "html_inline", content: `<code v-pre>${text}</code>` });
      }
    }
  });
}
