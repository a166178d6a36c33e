// Finds what may outlive a request in files that docs/reference/long-lived.md does not list.
import type { LongLived } from "../../src/base/long-lived.ts";
import type { SourceFile } from "./imports.ts";

/** Statements that make something that may outlive the request at hand. */
const marks: readonly (readonly [what: string, pattern: RegExp, below?: string])[] = [
  ["a WebSocket", /\bnew WebSocketLink\(/],
  ["a timer that repeats", /\bsetInterval\(/],
  ["a socket", /\bBun\.(?:listen|connect|serve)\b/],
  ["a process", /\b(?:Bun\.spawn|spawn)\(/],
  ["a streamed answer", /\bbegin\(client\b|\bbegin: (?:\(client\)|answer\b)/, "src/http/api/"],
  ["an entry that waits for its second half", /\bnew Pending\b/],
];

/** `housekeeping`: files whose timers and processes belong to the server itself, or to a command that ends. */
export function checkLongLived(
  files: readonly SourceFile[],
  kinds: readonly (readonly [id: string, kind: Pick<LongLived, "files">])[],
  housekeeping: readonly string[],
): string[] {
  const listed = new Set([...kinds.flatMap(([, kind]) => kind.files), ...housekeeping]);
  const sources = files.filter(({ path }) => path.startsWith("src/") && !/\.test\.tsx?$/.test(path));
  const unlisted = sources.flatMap(({ path, text }) => {
    const made = listed.has(path)
      ? undefined
      : marks.find(([, mark, below = ""]) => path.startsWith(below) && mark.test(withoutComments(text)));
    return made
      ? [
          `${path}: makes ${made[0]}, which may outlive its request. Declare its bounds and its end in src/base/long-lived.ts, or list the file as housekeeping in scripts/house/table.ts.`,
        ]
      : [];
  });
  const paths = new Set(sources.map(({ path }) => path));
  const gone = [...listed]
    .filter((path) => !paths.has(path))
    .map((path) => `${path}: is listed as long-lived, and is no file.`);
  return [...unlisted, ...gone];
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}
