// Shows a tool's definition so that a person can judge it: everything is visible, and changes are marked.
import type { DefinitionWire } from "../../wire/tools/mcp-servers.ts";
import { lineChanges } from "../terminal/line-changes.ts";
import type { Style } from "../terminal/terminal.ts";

type Definition = DefinitionWire["definition"];

/** The members that models rely on come first. */
const order = ["title", "description", "arguments", "inputSchema", "outputSchema", "annotations"];

/** Emoji legitimately contain such characters. */
const emojiOrHidden =
  /\p{Extended_Pictographic}\u{FE0F}?(?:\u{200D}\p{Extended_Pictographic}\u{FE0F}?)*|[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/**
 * A model reads characters that no terminal shows, such as zero-width spaces and language tags. They are written out,
 * and so are those that would control the terminal.
 */
export function unhidden(text: string): string {
  return text.replace(emojiOrHidden, (found) =>
    /^\p{Extended_Pictographic}/u.test(found) ? found : `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** One member below another, with its name. Texts stay as they are, everything else is JSON. */
export function definitionLines(definition: Definition): string[] {
  return membersOf(definition).flatMap((name) => [`${unhidden(name)}:`, ...linesOf(definition[name])]);
}

/**
 * The approved definition compared with the current one, in lines that begin with a sign. All of it if no difference
 * can be shown.
 */
export function changedLines(
  { approved, definition }: Pick<DefinitionWire, "approved" | "definition">,
  style: Style,
): string[] {
  if (approved === null || Bun.deepEquals(approved, definition)) {
    return definitionLines(definition).map((line) => `    ${line}`);
  }
  return membersOf({ ...approved, ...definition }).flatMap((name) => {
    const [before, after] = [approved[name], definition[name]].map((value) => linesOf(value).join("\n"));
    const lines = lineChanges(before ?? "", after ?? "").map(({ sign, line }) => {
      const shown = `  ${sign} ${line}`;
      return sign === "+" ? style.green(shown) : sign === "-" ? style.red(shown) : style.dim(shown);
    });
    return lines.length === 0 ? [] : [`    ${unhidden(name)}:`, ...lines];
  });
}

function membersOf(definition: Definition): string[] {
  const names = [...new Set([...order, ...Object.keys(definition)])];
  // The name is shown above the members.
  return names.filter((name) => name !== "name" && definition[name] !== undefined);
}

function linesOf(value: unknown): string[] {
  if (value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  return text.split("\n").map((line) => `  ${unhidden(line)}`);
}

/** The line for a table. */
export function firstLine(text: string): string {
  return text.trimStart().split("\n")[0] ?? "";
}
