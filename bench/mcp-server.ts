// The MCP server of the benchmark, a process of its own, by the protocol's own package: what a call costs it is what
// the gateway is compared with. It prints its port, and ends when its standard input does.
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import type { MockCounters } from "./mock-upstream.ts";
import { calledTool, toolCounts, toolList, toolResult } from "./tool-workload.ts";

/** Calls with a result, by the first segment of the path. */
const counters: MockCounters = { connections: 0, sources: {} };

function handlerOf(count: number) {
  const tools = toolList(count);
  const name = calledTool(count);
  const serverOf = ({ requestInfo }: { requestInfo?: Request }) => {
    const server = new Server({ name: "bench", version: "1" }, { capabilities: { tools: {} } });
    server.fallbackRequestHandler = async ({ method, params }) => {
      if (method === "tools/list") return { tools };
      if (method === "tools/call" && params?.["name"] === name) {
        countCall(sourceAndCount(requestInfo?.url ?? "")[0]);
        return toolResult;
      }
      throw { code: -32_602, message: "There is no such tool." };
    };
    return server;
  };
  return createMcpHandler(serverOf, { legacy: "reject" });
}

function sourceAndCount(url: string): [string, string] {
  const [source = "", count = ""] = new URL(url).pathname.slice(1).split("/");
  return [source, count];
}

function countCall(source: string): void {
  counters.sources[source] ??= { requests: 0, streams: 0, promptTokens: 0, completionTokens: 0 };
  counters.sources[source].requests++;
}

const handlers = new Map(toolCounts.map((count) => [String(count), handlerOf(count)]));

async function answer(request: Request): Promise<Response> {
  const [source, count] = sourceAndCount(request.url);
  if (source === "counters") return Response.json(counters);
  const handler = handlers.get(count);
  return handler ? await handler.fetch(request) : new Response(null, { status: 404 });
}

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: answer });
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);
for await (const _ of process.stdin);
process.exit(0);
