// Colours of code by classes: the highlighter writes them as attributes of style, which the pages' policy refuses.
import { createHash } from "node:crypto";

/** What the highlighter hands over of an element. */
interface Element {
  properties: Record<string, unknown>;
}

const rules = new Map<string, string>();

export const colorsByClass = {
  name: "colors by class",
  pre: replaceStyle,
  span: replaceStyle,
};

/** The style sheet of all that was highlighted so far: the same for the same texts. */
export function codeStyles(): string {
  return [...rules]
    .sort()
    .map(([name, style]) => `.${name}{${style}}`)
    .join("\n");
}

function replaceStyle(element: Element): void {
  const { style, class: classes = "" } = element.properties;
  if (typeof style !== "string" || style === "") return;
  const name = `c${createHash("sha256").update(style).digest("hex").slice(0, 8)}`;
  rules.set(name, style);
  delete element.properties["style"];
  element.properties["class"] = `${String(classes)} ${name}`.trim();
}
