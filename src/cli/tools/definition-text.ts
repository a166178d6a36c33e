// Shows a tool's definition for review: hidden characters are visible, and changes are marked.
import type { DefinitionWire } from "../../wire/tools/mcp-servers.ts";
import { lineChanges } from "../terminal/line-changes.ts";
import type { Style } from "../terminal/terminal.ts";

type Definition = DefinitionWire["definition"];

/** The order in which a definition's members are shown. Members that models rely on come first. */
const order = ["title", "description", "arguments", "inputSchema", "outputSchema", "annotations"];

/** Matches a whole emoji, or one hidden character. Hidden characters within an emoji are legitimate. */
const emojiOrHidden =
  /\p{Extended_Pictographic}\u{FE0F}?(?:\u{200D}\p{Extended_Pictographic}\u{FE0F}?)*|[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/**
 * Shows invisible characters as `\u{…}`: characters that a model reads and a terminal does not show, such as zero-width
 * spaces, and characters that control the terminal.
 */
export function unhidden(text: string): string {
  return text.replace(emojiOrHidden, (found) =>
    /^\p{Extended_Pictographic}/u.test(found) ? found : `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** Returns the definition's members, each under its name. Texts stay as they are; other values are shown as JSON. */
export function definitionLines(definition: Definition): string[] {
  return membersOf(definition).flatMap((name) => [`${unhidden(name)}:`, ...linesOf(definition[name])]);
}

/**
 * Returns the lines that differ between the approved and the current definition, each with a sign. If there is no
 * difference to show, returns the whole definition.
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
  // The name is left out, because it is shown above the members.
  return names.filter((name) => name !== "name" && definition[name] !== undefined);
}

function linesOf(value: unknown): string[] {
  if (value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  return text.split("\n").map((line) => `  ${unhidden(line)}`);
}

/** Returns the first line of a text, for a table. */
export function firstLine(text: string): string {
  return text.trimStart().split("\n")[0] ?? "";
}
