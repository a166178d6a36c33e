// The tools of servers as functions, which every model knows, and the way back from a call to its server.

import { fieldError } from "../../../../base/errors.ts";
import { toolSchema } from "../../../../domain/tools/tool-schema.ts";
import { type Json, objectsOf, textOf } from "../json.ts";
import { type AskedServer, type HostedTool, isAllowed, isHosted, needsApproval } from "./asked-servers.ts";

/** A tool that the model is offered, and whose it is. */
export interface OfferedTool {
  readonly server: AskedServer;
  readonly tool: HostedTool;
  readonly needsApproval: boolean;
}

/** Most servers bound the name of a function so. */
const maxNameLength = 64;
const hashLength = 6;

export class OfferedTools {
  readonly #byFunction = new Map<string, OfferedTool>();
  readonly #functions = new Map<string, string>();
  readonly #servers: readonly AskedServer[];
  /** Names of the client's own. */
  readonly #others: ReadonlySet<unknown>;

  /** `lists`: what each server listed. `others`: tools of the client's own. Throws where one of them has the name of one of these. */
  constructor(lists: readonly (readonly [AskedServer, readonly HostedTool[]])[], others: readonly Json[]) {
    const taken = new Set(others.map(({ name }) => textOf(name)));
    this.#servers = lists.map(([server]) => server);
    this.#others = taken;
    for (const [server, tools] of lists) {
      for (const tool of tools) {
        if (!isAllowed(server, tool)) continue;
        const name = functionName(server.label, tool.name);
        if (taken.has(name))
          throw fieldError("tools", `has a function \`${name}\`, which is the name of a tool of \`${server.label}\`.`);
        // A server that names its tools like those of another gets nothing that is meant for that.
        if (this.#byFunction.has(name)) continue;
        this.#byFunction.set(name, { server, tool, needsApproval: needsApproval(server, tool) });
        this.#functions.set(`${server.label} ${tool.name}`, name);
      }
    }
  }

  get size(): number {
    return this.#byFunction.size;
  }

  /** The tool that is meant by the name of a function, offered or not; undefined: it is one of the client's own. */
  find(functionName: unknown): OfferedTool | undefined {
    if (typeof functionName !== "string") return undefined;
    return this.#byFunction.get(functionName) ?? this.#madeUp(functionName);
  }

  /** A tool that its server does not have, or that is not offered: no client could run it. */
  #madeUp(functionName: string): OfferedTool | undefined {
    const server = this.#servers.find(({ label }) => functionName.startsWith(`${label}__`));
    if (!server || this.#others.has(functionName)) return undefined;
    const name = functionName.slice(server.label.length + 2);
    return { server, tool: { name, inputSchema: {}, isReadOnly: false }, needsApproval: false };
  }

  /** Whether the model was offered a function of this name: the name of a tool by itself is past what it needs approval for. */
  has(functionName: string): boolean {
    return this.#byFunction.has(functionName);
  }

  /** Undefined where it is not offered. */
  named(label: string, tool: string): OfferedTool | undefined {
    return this.#byFunction.get(this.#functions.get(`${label} ${tool}`) ?? "");
  }

  /** The tools of a request with those of servers as functions. */
  asFunctions(tools: readonly Json[]): Json[] {
    const functions = [...this.#byFunction].map(([name, { tool }]) => ({
      ...{ type: "function", name, strict: false, parameters: toolSchema(tool.inputSchema) },
      ...(tool.description === undefined ? {} : { description: tool.description }),
    }));
    return [...tools.filter((tool) => !isHosted(tool)), ...functions];
  }

  /** What a choice of tools means where those of servers are functions. */
  asChoice(choice: Json): unknown {
    if (choice["type"] === "allowed_tools") {
      const tools = objectsOf(choice["tools"]).flatMap((tool) => (isHosted(tool) ? this.#functionsOf(tool) : [tool]));
      return { ...choice, tools };
    }
    if (!isHosted(choice)) return choice;
    const functions = this.#functionsOf(choice);
    const [only] = functions;
    if (!only) throw fieldError("tool_choice", "names no tool that its server has, or that this request allows.");
    return functions.length === 1 ? only : { type: "allowed_tools", mode: "required", tools: functions };
  }

  /** Those that a choice of a server, or of one of its tools, means. */
  #functionsOf({ server_label: label, name }: Json): Json[] {
    return [...this.#byFunction].flatMap(([functionName, { server, tool }]) =>
      server.label === label && (name === undefined || name === null || name === tool.name)
        ? [{ type: "function", name: functionName }]
        : [],
    );
  }
}

/** Stable, and of no two tools the same. */
export function functionName(label: string, tool: string): string {
  const wanted = `${label}__${tool}`;
  const plain = wanted.replace(/[^A-Za-z0-9_-]/g, "_");
  // Else `a` and `b__c` would be what `a__b` and `c` are.
  const isClear = !`${label}_`.includes("__");
  if (isClear && plain === wanted && plain.length <= maxNameLength) return plain;
  const hash = new Bun.CryptoHasher("sha256").update(`${label} ${tool}`).digest("hex").slice(0, hashLength);
  return `${plain.slice(0, maxNameLength - hashLength - 1)}_${hash}`;
}
