// The JavaScript that a source file becomes, in the forms in which two states of it are compared.
import { type ParseResult, parse } from "@babel/parser";

const transpilers = {
  ts: new Bun.Transpiler({ loader: "ts", target: "bun" }),
  tsx: new Bun.Transpiler({ loader: "tsx", target: "bun" }),
};

/** The JavaScript of a file of TypeScript: without comments, types and formatting. */
export function emitted(path: string, text: string): string {
  return transpilers[path.endsWith(".tsx") ? "tsx" : "ts"].transformSync(text);
}

interface Node {
  type: string;
  start: number;
  end: number;
  [member: string]: unknown;
}

/** The same code with the titles of tests left out: the first argument of `test`, `describe` and what is made of them. */
export function withoutTitles(code: string): string {
  const titles: Node[] = [];
  for (const node of nodesOf(parse(code, { sourceType: "module" }))) {
    if (node.type !== "CallExpression" || !isOfTests(node["callee"] as Node)) continue;
    titles.push(...(node["arguments"] as Node[]).filter(isText).slice(0, 1));
  }
  return spliced(
    code,
    titles.map(({ start, end }) => ({ start, end, text: '""' })),
  );
}

const testRoots = ["test", "describe", "databases", "it"];

/** `test`, `test.each(…)`, `databases.only` and the like. */
function isOfTests(callee: Node): boolean {
  if (callee.type === "Identifier") return testRoots.includes(String(callee["name"]));
  if (callee.type === "MemberExpression") return isOfTests(callee["object"] as Node);
  return callee.type === "CallExpression" && isOfTests(callee["callee"] as Node);
}

function isText({ type }: Node): boolean {
  return type === "StringLiteral" || type === "TemplateLiteral";
}

/** One token of the code; `isName`: it is an identifier, whose name a rename may change. */
export interface Token {
  text: string;
  isName: boolean;
}

/** The code as a rename sees it. */
export interface RenamedCode {
  tokens: readonly Token[];
  /** Each import as module, imported name and own name; their order says nothing. */
  imports: readonly (readonly [module: string, imported: string, own: string])[];
}

/**
 * The tokens of the code. `{ turn }` counts as `{ turn: turn }`, as renaming the variable makes `{ turn: tick }` of it.
 * `moduleOf` names a module by its specifier.
 */
export function renamedCode(code: string, moduleOf: (specifier: string) => string): RenamedCode {
  const whole = expanded(code);
  const file = parse(whole, { sourceType: "module", tokens: true });
  const imports: [string, string, string][] = [];
  const spans: Node[] = [];
  for (const node of file.program.body as unknown as Node[]) {
    if (node.type !== "ImportDeclaration") continue;
    spans.push(node);
    const module = moduleOf(String((node["source"] as Node)["value"]));
    const specifiers = node["specifiers"] as Node[];
    if (specifiers.length === 0) imports.push([module, "", ""]);
    for (const one of specifiers) {
      const imported = (one["imported"] as Node | undefined)?.["name"] ?? one.type;
      imports.push([module, String(imported), String((one["local"] as Node)["name"])]);
    }
  }
  const tokens = (file.tokens as Node[])
    .filter(({ start }) => !spans.some((span) => span.start <= start && start < span.end))
    .filter(({ type }) => type !== "CommentBlock" && type !== "CommentLine")
    .map((token) => {
      const text = whole.slice(token.start, token.end);
      const { label } = token.type as unknown as { label: string };
      const isModule = label === "string" && /^["']\.{1,2}\//.test(text);
      return { text: isModule ? moduleOf(text.slice(1, -1)) : text, isName: label === "name" || label === "#name" };
    });
  return { tokens, imports };
}

/** The code with each shorthand written out. */
function expanded(code: string): string {
  const found: { start: number; end: number; text: string }[] = [];
  for (const node of nodesOf(parse(code, { sourceType: "module" }))) {
    const { start } = node;
    if (node.type === "ObjectProperty" && node["shorthand"] === true) {
      const name = (node["key"] as Node)["name"];
      found.push({ start, end: start, text: `${name}: ` });
    }
    if (node.type !== "ExportSpecifier") continue;
    const [own, exported] = [node["local"] as Node, node["exported"] as Node];
    if (own.start === exported.start) found.push({ start, end: start, text: `${own["name"]} as ` });
  }
  return spliced(code, found);
}

function spliced(code: string, changes: readonly { start: number; end: number; text: string }[]): string {
  let result = "";
  let offset = 0;
  for (const { start, end, text } of changes.toSorted((a, b) => a.start - b.start)) {
    result += code.slice(offset, start) + text;
    offset = end;
  }
  return result + code.slice(offset);
}

function* nodesOf(file: ParseResult): Generator<Node> {
  const open: unknown[] = [file.program];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (Array.isArray(value)) open.push(...value.filter(Boolean));
    else if (typeof value === "object" && value !== null) {
      if ("type" in value) yield value as Node;
      open.push(...Object.entries(value).flatMap(([member, below]) => (isBelow(member, below) ? [below] : [])));
    }
  }
}

function isBelow(member: string, value: unknown): boolean {
  return member !== "loc" && member !== "extra" && typeof value === "object" && value !== null;
}
