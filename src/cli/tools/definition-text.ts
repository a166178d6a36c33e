// What a server says of a tool as lines that a person can judge: nothing of it stays unseen, and what has changed is marked.
import type { DefinitionWire } from "../../wire/tools/mcp-servers.ts";
import { lineChanges } from "../terminal/line-changes.ts";
import type { Style } from "../terminal/terminal.ts";

type Definition = DefinitionWire["definition"];

/** What a model goes by stands first. */
const order = ["title", "description", "arguments", "inputSchema", "outputSchema", "annotations"];

/** Emoji are made up with such characters, of their own right. */
const emojiOrHidden =
  /\p{Extended_Pictographic}\u{FE0F}?(?:\u{200D}\p{Extended_Pictographic}\u{FE0F}?)*|[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/**
 * A model reads what no terminal shows, such as blanks of no width and tags of languages: it is written out, as is what
 * would command the terminal.
 */
export function unhidden(text: string): string {
  return text.replace(emojiOrHidden, (found) =>
    /^\p{Extended_Pictographic}/u.test(found) ? found : `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** One member below the other, each by its name; texts as they are, everything else as JSON. */
export function definitionLines(definition: Definition): string[] {
  return membersOf(definition).flatMap((name) => [`${unhidden(name)}:`, ...linesOf(definition[name])]);
}

/** What was approved beside what is said now, in lines that begin with a sign; all of it where there is no difference to show. */
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
  // It stands above all of them.
  return names.filter((name) => name !== "name" && definition[name] !== undefined);
}

function linesOf(value: unknown): string[] {
  if (value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  return text.split("\n").map((line) => `  ${unhidden(line)}`);
}

/** What stands in a line of a table. */
export function firstLine(text: string): string {
  return text.trimStart().split("\n")[0] ?? "";
}
