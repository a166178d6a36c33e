// Builds the capabilities and instructions for a client that initializes, from the servers that it may use.
import type { ServerCapabilities } from "@modelcontextprotocol/server";
import type { ClientSession, JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import { isObject } from "./server-lists.ts";
import { hasTasksExtension, tasksExtension } from "./tasks.ts";

/**
 * Maximum characters of the instructions of one server, and of all servers together. Models read them in each
 * conversation.
 */
const [maxLengthOfServer, maxLengthOfAll] = [4_000, 16_000];

export interface ServerInfo {
  readonly capabilities: ServerCapabilities;
  readonly instructions?: string;
}

export interface Met {
  readonly server: McpServer;
  /** The session with the server; undefined if the server could not be reached. */
  readonly link: Pick<ClientSession, "capabilities" | "isLegacy"> | undefined;
  /** Approved instructions of the server. */
  readonly instructions: string | undefined;
}

/** Capabilities for a request whose response does not contain them. */
export const unintroduced: ServerInfo = {
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
  },
};

/**
 * Merges the capabilities and instructions of servers. With `only` (the endpoint of one server), its instructions get
 * no heading.
 */
export function serverInfoOf(met: readonly Met[], isLegacy: boolean, only: string | undefined): ServerInfo {
  const has = (capability: string) =>
    met.some(({ link }) => link === undefined || link.capabilities[capability] !== undefined);
  const { prompts, resources, completions, logging } = unintroduced.capabilities;
  const hasTasks = met.some(({ link }) => link?.isLegacy === isLegacy && taskable(link.capabilities, isLegacy));
  const texts = met.flatMap(({ server, instructions = "" }) => {
    const text = plainText(instructions);
    if (text === "") return [];
    return [only === undefined ? headed(server, text) : text];
  });
  const instructions = cut(texts.join("\n\n"), maxLengthOfAll);
  return {
    capabilities: {
      // The gateway has tools of its own, whatever the servers have.
      tools: { listChanged: true },
      ...(has("prompts") && { prompts }),
      ...(has("resources") && { resources }),
      ...(has("completions") && { completions }),
      ...(has("logging") && { logging }),
      ...(hasTasks && isLegacy && { tasks: { cancel: {}, requests: { tools: { call: {} } } } }),
      ...(hasTasks && !isLegacy && { extensions: { [tasksExtension]: {} } }),
    },
    ...(instructions !== "" && { instructions }),
  };
}

/**
 * Reports whether tasks at the server can be used by the client's revision. Tasks of different revisions are not
 * translated.
 */
function taskable(capabilities: JsonObject, isLegacy: boolean): boolean {
  if (!isLegacy) return hasTasksExtension(capabilities);
  const { tasks } = capabilities;
  const requests = isObject(tasks) ? tasks["requests"] : undefined;
  const tools = isObject(requests) ? requests["tools"] : undefined;
  return isObject(tools) && tools["call"] !== undefined;
}

/** Adds a heading and quotes each line, so that the text cannot pass as that of another server or the gateway. */
function headed({ name, title }: McpServer, text: string): string {
  return `# ${plainText(title ?? name)} (tools ${name}_…)\n\n${text.replace(/^/gm, "> ")}`;
}

function plainText(text: string): string {
  const plain = text
    .toWellFormed()
    .replace(/[^\P{C}\n\t]/gu, "")
    .trim();
  return cut(plain, maxLengthOfServer);
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}
