// Paths of values in JSON, as error messages name them.

export type JsonPath = readonly (string | number)[];

/** Maximum number of shown characters of a name, because clients may send names of any length. */
const maxShownName = 64;

/** Writes a path such as `messages[0].content[1].type`. The path of the whole body is `body`. */
export function formatPath(path: JsonPath): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += `${text === "" ? "" : "."}${step.length > maxShownName ? `${step.slice(0, maxShownName)}…` : step}`;
  }
  return text === "" ? "body" : text;
}

/** Writes a path like `formatPath`, with escapes for invisible characters and characters that look like others. */
export function formatPathInAscii(path: JsonPath): string {
  return formatPath(path).replace(/[^ -~…]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
