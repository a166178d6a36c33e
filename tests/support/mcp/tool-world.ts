// A gateway with MCP servers behind it, for tests of what their clients get by it.
import { startHeadrace, type TestServer, type TestServerOptions } from "../headrace.ts";

/** One of `tools.servers` of headrace.yaml. */
export type ServerEntry = { name: string } & Readonly<Record<string, unknown>>;

export interface ToolWorld {
  server: TestServer;
  /** Where its tools are: those of one server, or of all. */
  at(name?: string): string;
  /** A key of the first key's account. */
  key(settings?: Readonly<Record<string, unknown>>): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Whatever they say is offered, unless an entry says otherwise. `yaml`: besides them. */
export async function startToolWorld(
  servers: readonly ServerEntry[],
  { yaml = "", ...options }: TestServerOptions = {},
): Promise<ToolWorld> {
  const server = await startHeadrace({ ...options, yaml: yaml + toolsYaml(servers) });
  return {
    server,
    at: (name) => (name === undefined ? `${server.url}/mcp` : `${server.url}/mcp/${name}`),
    async key(settings = {}) {
      const body = { name: "tools", scopes: ["tools:use"], ...settings };
      const response = await server.request("/v1/keys", { method: "POST", body });
      if (!response.ok) throw new Error(`No key: ${response.status} ${await response.text()}`);
      return ((await response.json()) as { key: string }).key;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export function toolsYaml(servers: readonly ServerEntry[]): string {
  return `tools: ${JSON.stringify({ servers: servers.map((entry) => ({ approval: "all", ...entry })) })}\n`;
}
