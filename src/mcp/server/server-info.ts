// What a client is told at the beginning: what the servers that it may use have, and what they say of how they are to be used.
import type { ServerCapabilities } from "@modelcontextprotocol/server";
import type { ClientSession, JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import { isObject } from "./server-lists.ts";
import { hasTasksExtension, tasksExtension } from "./tasks.ts";

/** Characters of what one server says, and of all together: models read it with each conversation. */
const [maxLengthOfServer, maxLengthOfAll] = [4_000, 16_000];

export interface ServerInfo {
  readonly capabilities: ServerCapabilities;
  readonly instructions?: string;
}

/** A server of the client. */
export interface Met {
  readonly server: McpServer;
  /** Undefined where it could not be reached: what it has shows later. */
  readonly link: Pick<ClientSession, "capabilities" | "isLegacy"> | undefined;
  /** What it says of itself, as far as that is approved. */
  readonly instructions: string | undefined;
}

/** For a request in which nothing of it is told. */
export const unintroduced: ServerInfo = {
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
  },
};

/** `only`: at the address of one server, whose own words stand by themselves. */
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
      // There are those of the gateway itself.
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

/** Tasks of earlier revisions are others, which are not translated. */
function taskable(capabilities: JsonObject, isLegacy: boolean): boolean {
  if (!isLegacy) return hasTasksExtension(capabilities);
  const { tasks } = capabilities;
  const requests = isObject(tasks) ? tasks["requests"] : undefined;
  const tools = isObject(requests) ? requests["tools"] : undefined;
  return isObject(tools) && tools["call"] !== undefined;
}

/** Each line is quoted, so that nobody's words look as if they were another server's, or ours. */
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
