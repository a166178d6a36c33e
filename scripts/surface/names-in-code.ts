// Reads from the source what has no table: names of metrics, labels, log events with their fields, and environment variables.
import { type ParseResult, parse } from "@babel/parser";
import { readSources } from "../house/imports.ts";

export interface NamesInCode {
  environment: string[];
  metrics: string[];
  labels: string[];
  events: string[];
}

interface Node {
  type: string;
  [member: string]: unknown;
}

const logLevels = ["info", "warn", "error"];
const metricTypes = ["gauge", "counter"];

export function namesInCode(root: string): NamesInCode {
  const environment = new Set<string>();
  const metrics = new Set<string>();
  const labels = new Set<string>();
  const events = new Map<string, Set<string>>();
  for (const { path, text } of readSources(root, ["src"])) {
    if (path.endsWith(".test.ts")) continue;
    for (const [name] of text.matchAll(/\bHEADRACE_[A-Z0-9_]*[A-Z0-9]\b/g)) environment.add(name);
    if (!/\blog\b|\bfamily\(|\b(?:gauge|counter)\("|labelText\(/i.test(text)) continue;
    for (const call of callsIn(parse(text, { sourceType: "module", plugins: ["typescript"] }))) {
      const { callee, first, second } = call;
      if (callee === "labelText") labels.add(membersOf(first).sort().join(" "));
      if (callee === "family" && textOf(first)) metrics.add(`${textOf(first)} ${textOf(second) ?? "?"}`);
      if (metricTypes.includes(callee) && textOf(first)?.startsWith("headrace_"))
        metrics.add(`${textOf(first)} ${callee}`);
      const event = logLevels.includes(callee) ? textOf(first) : undefined;
      if (event === undefined || !/^[a-z0-9_]+$/.test(event)) continue;
      const fields = events.get(`${event} ${callee}`) ?? new Set();
      events.set(`${event} ${callee}`, fields);
      for (const field of membersOf(second)) fields.add(field);
    }
  }
  return {
    environment: [...environment].sort(),
    metrics: [...metrics].sort(),
    labels: [...labels].filter(Boolean).sort(),
    events: [...events].map(([event, fields]) => [event, ...[...fields].sort()].join(" ")).sort(),
  };
}

interface CallInCode {
  /** The last name of what is called. */
  callee: string;
  first: Node | undefined;
  second: Node | undefined;
}

function* callsIn(file: ParseResult): Generator<CallInCode> {
  const open: unknown[] = [file.program];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Array.isArray(node)) open.push(...node);
    else if (isNode(node)) {
      if (node.type === "CallExpression" || node.type === "OptionalCallExpression") {
        const [first, second] = node["arguments"] as Node[];
        yield { callee: lastName(node["callee"] as Node), first, second };
      }
      for (const [member, value] of Object.entries(node)) {
        if (member !== "loc" && typeof value === "object" && value !== null) open.push(value);
      }
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function lastName(callee: Node): string {
  const name = callee.type.endsWith("MemberExpression") ? (callee["property"] as Node) : callee;
  return typeof name["name"] === "string" ? name["name"] : "";
}

function textOf(node: Node | undefined): string | undefined {
  return node?.type === "StringLiteral" ? String(node["value"]) : undefined;
}

/** The names in an object literal; `...` for what is spread into it. */
function membersOf(node: Node | undefined): string[] {
  if (node?.type !== "ObjectExpression") return node === undefined ? [] : ["..."];
  return (node["properties"] as Node[]).map((member) => {
    const key = member["key"] as Node | undefined;
    if (member.type === "SpreadElement" || key === undefined || member["computed"] === true) return "...";
    return textOf(key) ?? String(key["name"]);
  });
}
