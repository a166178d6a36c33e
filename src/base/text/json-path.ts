// Paths of values in JSON, as error messages name them.

export type JsonPath = readonly (string | number)[];

/** How many characters of a name are shown, since clients may send names of any length. */
const maxShownName = 64;

/** `messages[0].content[1].type`; the whole itself is `body`. */
export function formatPath(path: JsonPath): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += `${text === "" ? "" : "."}${step.length > maxShownName ? `${step.slice(0, maxShownName)}…` : step}`;
  }
  return text === "" ? "body" : text;
}

/** Like `formatPath`, with escapes for characters that look like others or are invisible. */
export function formatPathInAscii(path: JsonPath): string {
  return formatPath(path).replace(/[^ -~…]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
