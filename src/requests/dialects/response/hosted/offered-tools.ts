// Offers MCP tools to the model as functions, because every model knows functions. Also finds the tool that a function
// call means.

import { fieldError } from "../../../../base/errors.ts";
import { toolSchema } from "../../../../domain/tools/tool-schema.ts";
import { type Json, objectsOf, textOf } from "../json.ts";
import { type AskedServer, type HostedTool, isAllowed, isHosted, needsApproval } from "./asked-servers.ts";

/** An MCP tool that the model may call, and the server of this tool. */
export interface OfferedTool {
  readonly server: AskedServer;
  readonly tool: HostedTool;
  readonly needsApproval: boolean;
}

/** Maximum length of a function name at most model servers. */
const maxNameLength = 64;
const hashLength = 6;

export class OfferedTools {
  readonly #byFunction = new Map<string, OfferedTool>();
  readonly #functions = new Map<string, string>();
  readonly #servers: readonly AskedServer[];
  /** Names of the functions that are the client's own tools. */
  readonly #others: ReadonlySet<unknown>;

  /**
   * `lists` holds the tools of each MCP server, and `others` the client's own tools. Throws if a client's tool has the
   * same function name as an MCP tool.
   */
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
        // If two servers have tools with the same function name, a call for one server must not go to the other server.
        if (this.#byFunction.has(name)) continue;
        this.#byFunction.set(name, { server, tool, needsApproval: needsApproval(server, tool) });
        this.#functions.set(`${server.label} ${tool.name}`, name);
      }
    }
  }

  get size(): number {
    return this.#byFunction.size;
  }

  /**
   * Returns the MCP tool that has this function name, even if the tool is not offered. Returns undefined for a function
   * of the client.
   */
  find(functionName: unknown): OfferedTool | undefined {
    if (typeof functionName !== "string") return undefined;
    return this.#byFunction.get(functionName) ?? this.#madeUp(functionName);
  }

  /**
   * Returns a placeholder for a tool that its server does not have or that is not offered. The client could not run
   * such a call either.
   */
  #madeUp(functionName: string): OfferedTool | undefined {
    const server = this.#servers.find(({ label }) => functionName.startsWith(`${label}__`));
    if (!server || this.#others.has(functionName)) return undefined;
    const name = functionName.slice(server.label.length + 2);
    return { server, tool: { name, inputSchema: {}, isReadOnly: false }, needsApproval: false };
  }

  /**
   * Reports whether a tool is offered to the model under this function name. A tool's name without its server does not
   * count, because it would bypass the approval.
   */
  has(functionName: string): boolean {
    return this.#byFunction.has(functionName);
  }

  /** Returns a tool by its server and name, or undefined if the tool is not offered. */
  named(label: string, tool: string): OfferedTool | undefined {
    return this.#byFunction.get(this.#functions.get(`${label} ${tool}`) ?? "");
  }

  /** Returns the tools of a request, in which MCP tools have become functions. */
  asFunctions(tools: readonly Json[]): Json[] {
    const functions = [...this.#byFunction].map(([name, { tool }]) => ({
      ...{ type: "function", name, strict: false, parameters: toolSchema(tool.inputSchema) },
      ...(tool.description === undefined ? {} : { description: tool.description }),
    }));
    return [...tools.filter((tool) => !isHosted(tool)), ...functions];
  }

  /** Converts a tool choice to one that names functions instead of MCP tools. */
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

  /** Returns the functions of all tools of a server, or of only one of its tools. */
  #functionsOf({ server_label: label, name }: Json): Json[] {
    return [...this.#byFunction].flatMap(([functionName, { server, tool }]) =>
      server.label === label && (name === undefined || name === null || name === tool.name)
        ? [{ type: "function", name: functionName }]
        : [],
    );
  }
}

/** Returns a function name that is different for every tool and always the same for one tool. */
export function functionName(label: string, tool: string): string {
  const wanted = `${label}__${tool}`;
  const plain = wanted.replace(/[^A-Za-z0-9_-]/g, "_");
  // If labels with `__` were used unchanged, label `a` with tool `b__c` would have the same function name as label
  // `a__b` with tool `c`.
  const isClear = !`${label}_`.includes("__");
  if (isClear && plain === wanted && plain.length <= maxNameLength) return plain;
  const hash = new Bun.CryptoHasher("sha256").update(`${label} ${tool}`).digest("hex").slice(0, hashLength);
  return `${plain.slice(0, maxNameLength - hashLength - 1)}_${hash}`;
}
