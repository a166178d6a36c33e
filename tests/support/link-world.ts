// Links to MCP servers as the gateway makes them, with callers, for tests.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import type { Principal } from "../../src/domain/principal.ts";
import type { ClientSession, JsonObject, ToolAnswer, ToolExchange } from "../../src/domain/tools/client-session.ts";
import type { McpServer } from "../../src/domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../src/domain/tools/node-tools.ts";
import type { ToolConnections } from "../../src/domain/tools/tool-connection.ts";
import { ServerSessions, type SessionBounds } from "../../src/mcp/client/sessions.ts";
import { silentLog } from "./data-directory.ts";
import { manualClock } from "./manual-clock.ts";
import { keyRecordFor, principalFor } from "./principal.ts";

export class LinkWorld implements AsyncDisposable {
  readonly dataDir: string;
  readonly clock = manualClock();
  readonly links: ServerSessions;

  constructor(
    options: {
      bounds?: Partial<SessionBounds>;
      connections?: ToolConnections;
      nodes?: ToolNodes;
      dataDir?: string;
      connectMs?: number;
    } = {},
  ) {
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "links-"));
    const none: ToolConnections = {
      accessToken: async () => undefined,
      refused: async () => {},
      connectionId: async () => undefined,
      insufficient: async () => {},
    };
    this.links = new ServerSessions({
      ...{
        version: "1.2.3",
        dataDir: this.dataDir,
        environment: process.env,
        stopMs: 500,
        connectMs: options.connectMs ?? 5_000,
      },
      nodes: options.nodes ?? {
        find: () => undefined,
        send: () => Promise.reject(new Error("There are no nodes.")),
        onChange: () => () => {},
      },
      ...{ clock: this.clock, log: silentLog, connections: options.connections ?? none },
      connectAt: (server) => `https://gateway.example/dashboard/tools/${server}`,
      ...(options.bounds && { bounds: options.bounds }),
    });
  }

  open(server: McpServer, key = "key_1"): Promise<ClientSession> {
    return this.links.open(server, { principal: callerOf(key) });
  }

  async call(server: McpServer, name: string, own: Partial<ToolExchange> & { key?: string } = {}): Promise<ToolAnswer> {
    const link = await this.open(server, own.key);
    return await link.request("tools/call", { name, arguments: {} }, exchangeFor(own));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.links.shut();
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

/** The principal of a key, which is a person's of the same number. */
export function callerOf(id: string): Principal {
  return principalFor({ keys: [keyRecordFor({ id, limitId: id, personId: id.replace("key", "person") })] });
}

export function exchangeFor(own: Partial<ToolExchange> = {}): ToolExchange {
  return { memoryAccount: bufferedBytes.visitors, cancellation: new Cancellation(), ...own };
}

/** The text of what a tool gave. */
export function textOf(answer: ToolAnswer): string {
  if ("error" in answer) return `error ${answer.error.code}`;
  const [first] = answer.result["content"] as JsonObject[];
  return String(first?.["text"]);
}
