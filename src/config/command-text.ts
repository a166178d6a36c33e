// Parses a command line and sizes such as 6GB in the configuration.

/**
 * The placeholder for the port that the server chooses for a command. Unlike other `${…}`, it is no environment
 * variable.
 */
export const portMark = "$" + "{PORT}";

const factors: Readonly<Record<string, number>> = {
  b: 1,
  ...{ kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 },
  ...{ kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 },
};

const sizePattern = /^(\d+(?:\.\d+)?) ?([kmgt]?i?b)$/i;

export function isByteSize(text: string): boolean {
  const [, , unit = ""] = sizePattern.exec(text) ?? [];
  return Object.hasOwn(factors, unit.toLowerCase()) && Number.isSafeInteger(byteSize(text));
}

/** Returns the bytes of a number, or of a size that `isByteSize` accepts. */
export function byteSize(size: string | number): number {
  if (typeof size === "number") return size;
  const [, amount = "0", unit = "b"] = sizePattern.exec(size) ?? [];
  return Math.round(Number(amount) * (factors[unit.toLowerCase()] ?? 1));
}

/** Matches one word of a command line, with its quoted parts and escaped characters. */
const wordPattern = /\s*((?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+)\s*/gsy;

/**
 * Splits a command line into words as a shell would, but expands nothing. Returns undefined if a quote is not closed.
 */
export function splitWords(line: string): string[] | undefined {
  const words: string[] = [];
  wordPattern.lastIndex = 0;
  let end = 0;
  for (let match = wordPattern.exec(line); match; match = wordPattern.exec(line)) {
    words.push(unquoted(match[1] ?? ""));
    end = wordPattern.lastIndex;
  }
  return end === line.length && words.length > 0 ? words : undefined;
}

function unquoted(word: string): string {
  return word.replaceAll(
    /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs,
    (_, single?: string, double?: string, escaped?: string) => {
      if (double !== undefined) return double.replaceAll(/\\(["\\])/g, "$1");
      return single ?? escaped ?? "";
    },
  );
}
