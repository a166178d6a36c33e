// An MCP server as a process: it does everything that the protocol has, and has tools by which it goes wrong when it is asked to.
import { fromJsonSchema, type McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { makeEverythingServer } from "./everything-server.ts";

/** The command that starts it. */
export const stdioServer: readonly [string, ...string[]] = [process.execPath, import.meta.path];

const wrongs: Readonly<Record<string, () => unknown>> = {
  crash: () => process.exit(7),
  // Neither a message, nor anything that ends.
  garbage: () => process.stdout.write("this is no JSON\n{ nor is this\n\u0000\n[1,2]\n"),
  "huge-line": () => process.stdout.write(`${"x".repeat(64 * 1024 * 1024)}`),
  silence: () => new Promise<never>(() => {}),
  chatter: () => process.stderr.write("x".repeat(8 * 1024 * 1024)),
};

function make(): McpServer {
  const notifier = { toolsChanged: () => {}, promptsChanged: () => {}, resourceUpdated: () => {} };
  const server = makeEverythingServer(notifier);
  const inputSchema = fromJsonSchema<Record<string, unknown>>({ type: "object" });
  for (const [name, wrong] of Object.entries(wrongs)) {
    server.registerTool(name, { description: `Does ${name}.`, inputSchema }, async () => {
      await wrong();
      return { content: [{ type: "text", text: `It did ${name}.` }] };
    });
  }
  server.registerTool("environment", { description: "Tells what it was given.", inputSchema }, async () => ({
    content: [
      { type: "text", text: JSON.stringify({ variables: process.env, directory: process.cwd(), pid: process.pid }) },
    ],
  }));
  return server;
}

if (import.meta.main) serveStdio(make);
