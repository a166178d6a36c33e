// Compares what a guide shows with what a program printed: their words and members, not the values that differ each time.

/** What stands for more, or for what differs: nothing is said of it. */
const more = "…";
const units = "(?:[kMGT]?B|ms|s|min|h|%)";

/** A line with marks where values are. */
function shapeOf(line: string): string {
  return (
    line
      .replaceAll(/\b(key|acct|usr|app|req|sec)_[\w…-]+/g, "$1_*")
      .replaceAll(/\b(?:sk|hrn|hrs|hrr)_[\w…]+/g, "secret")
      .replaceAll(/"[^"]*"/g, '"*"')
      .replaceAll(/[█▏▎▍▌▋▊▉░]+/g, "▒")
      .replaceAll(/(?:\/[\w.-]+)+\//g, "/")
      .replaceAll(/\b(?:dev|test|live)\b/g, "live")
      .replaceAll(/\$?\d(?:[\d,.:TZ-]*\d)?Z?/g, "#")
      .replaceAll(new RegExp(`# ${units}(?!\\w)`, "g"), "#")
      .replaceAll(/# ([a-z]+?)s?(?![a-z])/g, "# $1")
      // How far away a time is depends on the day.
      .replaceAll(/\bin # day(?![a-z])/g, "in #")
      .replaceAll(/\s+/g, " ")
      .trim()
  );
}

/** A row of a table is known by its cells alone: a name is as good as another. */
function shapeOfRow(line: string, between: RegExp): string {
  const cells = line.trim().split(between);
  return cells.map((cell) => (/^(?:\$?[\d,.:TZ-]+|unlimited)$/.test(cell) ? "#" : "word")).join(" | ");
}

interface Line {
  text: string;
  shape: string;
}

/** How the cells of the rows below are parted; undefined: it is no head of a table. */
function cellsBelow(line: string): RegExp | undefined {
  if (/^[A-Z][A-Z (),/]*(?: {2,}[A-Z][A-Z (),/]*)+$/.test(line)) return / {2,}/;
  return /^[a-z_]+(?:,[a-z_\d]+){2,}$/.test(line) ? /,/ : undefined;
}

/** An empty line ends a table. */
function linesOf(text: string): Line[] {
  let between: RegExp | undefined;
  return text.split(/\r?\n/).flatMap((line) => {
    const head = cellsBelow(line);
    const shape = between && !head && line !== more ? shapeOfRow(line, between) : shapeOf(line);
    between = line.trim() === "" ? undefined : (head ?? between);
    return line.trim() === "" ? [] : [{ text: line, shape }];
  });
}

/** Lines that a transcript shows and nobody printed, and, where it does not say that there is more, the other way round. */
export function faultsOfTranscript(transcript: string, printed: readonly string[]): string[] {
  const shown = linesOf(transcript.replaceAll(/^\$ .*$/gm, ""));
  if (shown.length === 0) return [];
  const lines = printed.flatMap(linesOf);
  const lacks = (all: readonly Line[]) => {
    const shapes = new Set([...all.map(({ shape }) => shape), more]);
    return ({ shape }: Line) => !shapes.has(shape);
  };
  const isAll = !shown.some(({ shape }) => shape === more);
  return [
    ...shown.filter(lacks(lines)).map(({ text }) => `not printed: ${text}`),
    ...(isAll ? lines.filter(lacks(shown)) : []).map(({ text }) => `not shown: ${text}`),
  ];
}

/** Members that one has and the other has not, or of another kind. What is null or empty may be anything. */
export function faultsOfValue(shown: unknown, real: unknown, at = "it"): string[] {
  if (shown === null || real === null) return [];
  if (Array.isArray(shown) && Array.isArray(real)) {
    return shown.length > 0 && real.length > 0 ? faultsOfValue(shown[0], real[0], `${at}[0]`) : [];
  }
  if (typeof shown !== typeof real || Array.isArray(shown) !== Array.isArray(real)) return [`${at} is of another kind`];
  if (!isObject(shown) || !isObject(real)) return [];
  const names = [...new Set([...Object.keys(shown), ...Object.keys(real)])];
  return names.flatMap((name) => {
    if (!(name in real)) return [`${at}.${name} is not there`];
    if (!(name in shown)) return [`${at}.${name} is not shown`];
    return faultsOfValue(shown[name], real[name], `${at}.${name}`);
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
