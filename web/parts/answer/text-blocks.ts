// Divides an answer into paragraphs and fenced blocks of code (CommonMark 4.5); all of it stays text.

export interface Block {
  kind: "text" | "code";
  text: string;
  /** Of code, as the fence says; else empty. */
  language: string;
}

const opening = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})\s*([^\s`]*)/;

/** A fence that is still open reaches to the end: the answer may be in the middle of it. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let lines: string[] = [];
  let fence: { mark: string; language: string } | undefined;
  const close = (kind: Block["kind"], language = "") => {
    if (kind === "code" || lines.some((line) => line.trim() !== "")) {
      blocks.push({ kind, text: lines.join("\n"), language });
    }
    lines = [];
  };
  for (const line of text.split("\n")) {
    const bare = line.trim();
    if (fence) {
      const isEnd = bare.length >= fence.mark.length && bare === (fence.mark[0] ?? "").repeat(bare.length);
      if (isEnd) {
        close("code", fence.language);
        fence = undefined;
      } else lines.push(line);
      continue;
    }
    const [, mark, language = ""] = opening.exec(line) ?? [];
    if (mark !== undefined) {
      close("text");
      fence = { mark, language };
    } else if (bare === "") close("text");
    else lines.push(line);
  }
  if (fence) close("code", fence.language);
  else close("text");
  return blocks;
}
