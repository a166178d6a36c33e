// An MCP server over standard input and output, which behaves as its argument says.
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { mcpServer, textResult } from "./mcp-servers.ts";

const [how = "fine"] = process.argv.slice(2);

if (how === "silent") await new Promise(() => setInterval(() => {}, 60_000));
if (how === "garbage") process.stdout.write("Server is up!\n");
if (how === "no probe") {
  // Some servers end at a question that they do not know.
  process.stdin.on("data", (bytes) => {
    if (bytes.toString().includes("server/discover")) process.exit(3);
  });
}

const forever = () => new Promise<never>(() => {});

const server = () =>
  mcpServer({
    where: async () =>
      textResult(
        JSON.stringify({ env: process.env, directory: process.cwd(), pid: process.pid, parent: process.ppid }),
      ),
    crash: async () => {
      process.stderr.write("something is wrong in here\n");
      process.exit(7);
    },
    hang: forever,
    stop: async () => {
      process.kill(process.pid, "SIGSTOP");
      return await forever();
    },
    huge: async () => {
      process.stdout.write("x".repeat(5_000_000));
      return await forever();
    },
    long: async ({ arguments: asked }) => textResult("rain ".repeat(Number((asked as { words: number }).words))),
    notes: async () => {
      const note = `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/note" })}\n`;
      process.stdout.write(note.repeat(3_000));
      return textResult("noted");
    },
    half: async () => {
      process.stdout.write('{"jsonrpc":"2.0","id":\n');
      return await forever();
    },
    twice: async (_params, context) => {
      const answer = { jsonrpc: "2.0", id: context.mcpReq.id, result: textResult("first") };
      process.stdout.write(`${JSON.stringify(answer)}\n`);
      return textResult("second");
    },
    ask: async (_params, context) => {
      const params = { message: "Who?", requestedSchema: { type: "object", properties: {} } };
      const raw = { "~standard": { version: 1, vendor: "raw", validate: (value: unknown) => ({ value }) } } as const;
      const got = await context.mcpReq.send({ method: "elicitation/create", params }, raw);
      return textResult(JSON.stringify(got));
    },
    change: async (_params, _context, own) => {
      await own.sendToolListChanged();
      return textResult("changed");
    },
    child: async () => textResult(String(Bun.spawn(["sleep", "600"]).pid)),
  });

serveStdio(server, how === "modern" ? { legacy: "reject" } : {});
