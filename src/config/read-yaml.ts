// Parses YAML text to plain data, replaces variables by their values, and records the line and column of every value.
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  parseDocument,
  stringify,
} from "yaml";
import { portMark } from "./command-text.ts";
import type { Env } from "./formats.ts";
import { type Path, renderPath } from "./paths.ts";
import type { Problem, SourceLocation } from "./problems.ts";
import { type SecretLookup, substitute } from "./substitute.ts";

export interface YamlFile {
  /** The file as plain data. An empty file is an empty mapping. Undefined if the text is not YAML. */
  data: unknown;
  problems: readonly Problem[];
  /** True if the file has no value and no key. Comments do not count. */
  isEmpty: boolean;
  /** Returns the location of the value at `path`. If it does not exist, returns that of its nearest existing parent. */
  locate(path: Path): SourceLocation;
  /** Returns the location of `key` in the mapping at `path`. */
  locateKey(path: Path, key: string): SourceLocation;
  /** Returns the names of the variables and other references in the value at `path`. */
  variables(path: Path): readonly string[];
}

/**
 * Parses the text of a configuration file. `label` is the file's name in messages. Without `secrets`, a reference to a
 * secret is a problem.
 */
export function readYaml(text: string, label: string, env: Env, secrets?: SecretLookup): YamlFile {
  const lines = new LineCounter();
  return fileOf(parseDocument(text, { ...parsing, lineCounter: lines }), lines, text, label, env, secrets);
}

/** Parses a text with several documents, separated by `---`. Documents without a value are left out. */
export function readYamlDocuments(text: string, label: string, env: Env): YamlFile[] {
  const lines = new LineCounter();
  const documents: Document[] = [...parseAllDocuments(text, { ...parsing, lineCounter: lines })];
  return documents.map((document) => fileOf(document, lines, text, label, env)).filter(({ isEmpty }) => !isEmpty);
}

/** Writes documents in the form that `readYamlDocuments` reads. */
export function writeYamlDocuments(documents: readonly unknown[]): string {
  return documents.map((document) => stringify(document, { lineWidth: 0 })).join("---\n");
}

// `prettyErrors` would quote the source line, which may contain a key.
const parsing = { prettyErrors: false, stringKeys: true } as const;

function fileOf(
  document: Document,
  lines: LineCounter,
  text: string,
  label: string,
  env: Env,
  secrets?: SecretLookup,
): YamlFile {
  const locationAt = (offset: number, path: string): SourceLocation => {
    const { line, col } = lines.linePos(offset);
    return { file: label, line, column: col, path };
  };
  const substituted = new Map<Node, readonly string[]>();
  const file = {
    isEmpty: document.contents === null,
    locate: (path: Path) => locationAt(startOf(findNode(document, path).node), renderPath(path)),
    locateKey: (path: Path, key: string) => {
      const pair = pairOf(findNode(document, path).node, key);
      return locationAt(startOf(pair?.key ?? document.contents), renderPath([...path, key]));
    },
    variables: (path: Path) => {
      const found = findNode(document, path);
      return (found.whole && found.node && substituted.get(found.node)) || [];
    },
  };
  const syntax = syntaxProblems(document, text, locationAt);
  if (syntax.length > 0) return { ...file, data: undefined, problems: syntax };
  const problems: Problem[] = [];
  let resolvable = true;
  walk(document.contents, [], (node, path) => {
    if (isAlias(node)) {
      if (node.resolve(document) !== undefined) return;
      resolvable = false;
      problems.push({ ...locationAt(startOf(node), renderPath(path)), ...unknownAnchor });
    } else if (isScalar(node) && typeof node.value === "string") {
      const result = substitute(node.value, isOfCommand(path) ? { ...env, PORT: portMark } : env, secrets);
      if (!result.ok) problems.push({ ...file.locate(path), message: result.message, fix: result.fix });
      else if (result.names.length > 0) substituted.set(node, result.names);
      if (result.ok) node.value = result.text;
    }
  });
  if (!resolvable) return { ...file, data: undefined, problems };
  try {
    return { ...file, data: document.toJS({ maxAliasCount: 100 }) ?? {}, problems };
  } catch {
    // The only error left is the alias limit. It keeps a small file from expanding to gigabytes.
    return { ...file, data: undefined, problems: [{ ...locationAt(0, ""), ...tooManyAliases }] };
  }
}

/**
 * Reports whether the value belongs to a command. There, `${PORT}` is the port that the server chooses, and no
 * environment variable.
 */
function isOfCommand([section, key]: Path): boolean {
  return section === "engine" && key === "commands";
}

const unknownAnchor = {
  message: "refers to an anchor that is not defined above it",
  fix: "Define the anchor above, or quote a text that begins with an asterisk.",
} as const;

const tooManyAliases = { message: "repeats its anchors too often", fix: "Write the values out." } as const;

type Visit = (node: Node, path: Path) => void;

function walk(node: unknown, path: Path, visit: Visit): void {
  if (isMap(node)) {
    for (const pair of node.items) walk(pair.value, [...path, keyText(pair)], visit);
  } else if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) walk(item, [...path, index], visit);
  } else if (isAlias(node) || isScalar(node)) {
    visit(node, path);
  }
}

/** Follows the path as far as it exists. `whole` is true if the last node is the value at the path. */
function findNode(document: Document, path: Path): { node: Node | null; whole: boolean } {
  let node: Node | null = document.contents;
  for (const part of path) {
    let next: unknown;
    if (isMap(node)) next = pairOf(node, String(part))?.value;
    else if (isSeq(node) && typeof part === "number") next = node.items[part];
    const resolved = isAlias(next) ? next.resolve(document) : next;
    if (!isMap(resolved) && !isSeq(resolved) && !isScalar(resolved)) return { node, whole: false };
    node = resolved;
  }
  return { node, whole: true };
}

function pairOf(node: Node | null, key: string): Pair<Node, unknown> | undefined {
  if (!isMap<Node, unknown>(node)) return undefined;
  return node.items.find((pair) => keyText(pair) === key);
}

function keyText(pair: Pair<unknown, unknown>): string {
  return String(isScalar(pair.key) ? pair.key.value : pair.key);
}

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}

/** Our own messages for the parser's error codes. The parser's messages quote parts of the file, which may be a key. */
const syntaxMessages: Readonly<Record<string, readonly [message: string, fix: string]>> = {
  DUPLICATE_KEY: ["this key stands twice in its mapping", "Remove one of the two."],
  TAB_AS_INDENT: ["a tab is used as indentation", "Indent with spaces."],
  BAD_INDENT: ["the indentation does not fit the lines above", "Let keys of one mapping begin in the same column."],
  MULTIPLE_DOCS: ["a second document begins here", "Keep one document; remove this --- and what belongs to it."],
  TAG_RESOLVE_FAILED: [
    "this tag is not known",
    "Remove the word that begins with an exclamation mark, or quote the text.",
  ],
  BAD_SCALAR_START: ["a text cannot begin with this character", "Put the text in quotes."],
  BLOCK_AS_IMPLICIT_KEY: [
    "a key stands inside this value",
    "Begin keys of one mapping in the same column, and quote a text that holds a colon and a space.",
  ],
  NON_STRING_KEY: ["a key must be a plain text", "Write a plain word before the colon."],
};
const otherSyntax = [
  "is no valid YAML here",
  "Check quotes, brackets, colons and indentation at this line and above.",
] as const;

function syntaxProblems(
  document: Document,
  text: string,
  locationAt: (offset: number, path: string) => SourceLocation,
): Problem[] {
  const found = [...document.errors, ...document.warnings];
  const duplicates = found.filter((error) => error.code === "DUPLICATE_KEY");
  // Only the first error is shown, because later errors of the parser are misleading. If all errors are duplicate keys,
  // all are shown.
  const shown = duplicates.length === found.length ? duplicates : found.slice(0, 1);
  return shown.map((error) => {
    const location = locationAt(error.pos[0], "");
    const [message, fix] = syntaxMessages[error.code] ?? otherSyntax;
    const line = text.split("\n")[(location.line ?? 1) - 1] ?? "";
    const inBraces = /[{[][^{[]*\$\{/.test(line) && error.code !== "DUPLICATE_KEY";
    return { ...location, message, fix: inBraces ? `Between { } or [ ] put "\${NAME}" in quotes.` : fix };
  });
}
