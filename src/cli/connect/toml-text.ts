// Sets a value in the text of a TOML file: a top-level value, or a whole table of plain values. Everything else stays
// as written.

/** Matches the line that begins a table and captures its name. */
const header = /^\s*\[{1,2}\s*(.+?)\s*\]{1,2}\s*(?:#.*)?$/;

/**
 * Returns the text with the value set, or removed if `value` is undefined. `path` is one name for a top-level value, or
 * several for a table of strings, numbers and booleans. The caller must check the result: multi-line values and dotted
 * tables are not supported.
 */
export function setInToml(text: string, path: readonly string[], value: unknown): string {
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  const changed = path.length === 1 ? withTopValue(lines, path[0] ?? "", value) : withTable(lines, path, value);
  return changed.length === 0 ? "" : `${changed.join("\n")}\n`;
}

function withTopValue(lines: readonly string[], name: string, value: unknown): string[] {
  const end = lines.findIndex((line) => header.test(line));
  const top = end < 0 ? lines.length : end;
  const at = lines.findIndex((line, index) => index < top && keyOf(line) === name);
  if (value === undefined) return at < 0 ? [...lines] : lines.toSpliced(at, 1);
  const line = `${bare(name)} = ${literal(value)}`;
  if (at >= 0) return lines.toSpliced(at, 1, line + commentOf(lines[at] ?? ""));
  // The value goes after the last top-level value. A comment on the first table thus stays with the table.
  const last = lines.findLastIndex((one, index) => index < top && keyOf(one) !== undefined);
  return lines.toSpliced(last + 1, 0, line, ...(last < 0 && lines.length > 0 && lines[0] !== "" ? [""] : []));
}

function withTable(lines: readonly string[], path: readonly string[], value: unknown): string[] {
  const name = path.map(bare).join(".");
  const start = lines.findIndex((line) => namesOf(header.exec(line)?.[1] ?? "").join("\0") === path.join("\0"));
  const body =
    value === undefined
      ? []
      : [`[${name}]`, ...Object.entries(value as object).map(([key, one]) => `${bare(key)} = ${literal(one)}`)];
  if (start < 0) return body.length === 0 ? [...lines] : [...lines, ...(lines.length > 0 ? [""] : []), ...body];
  const next = lines.findIndex((line, index) => index > start && header.test(line));
  let end = next < 0 ? lines.length : next;
  // Blank lines and comments before the next table belong to that table.
  while (end > start + 1 && /^\s*(?:#.*)?$/.test(lines[end - 1] ?? "")) end--;
  const before = body.length === 0 && lines[start - 1] === "" ? start - 1 : start;
  return lines.toSpliced(before, end - before, ...body);
}

function keyOf(line: string): string | undefined {
  const match = /^\s*(?:"([^"\\]*)"|'([^']*)'|([\w-]+))\s*=/.exec(line);
  return match?.[1] ?? match?.[2] ?? match?.[3];
}

/** Returns the comment at the end of the line, if the line has a complete value. */
function commentOf(line: string): string {
  return /^[^=]*=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'#[{]*?)(\s*#.*)$/.exec(line)?.[1] ?? "";
}

/** Returns the names of a dotted key. */
function namesOf(key: string): string[] {
  return [...key.matchAll(/"([^"\\]*)"|'([^']*)'|([\w-]+)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

function bare(name: string): string {
  return /^[\w-]+$/.test(name) ? name : literal(name);
}

/** JSON's strings, numbers and booleans are valid TOML, except that TOML requires DEL to be escaped. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
