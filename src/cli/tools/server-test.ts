// `headrace tools test`: connects to a new or an existing MCP server, and shows its tools or the error.
import { type McpServerTestWire, mcpServerTestShape } from "../../wire/tools/mcp-servers.ts";
import { printRows } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { CliError, exitCodes, formatFacts, type Terminal } from "../terminal/terminal.ts";
import { firstLine, unhidden } from "./definition-text.ts";
import { givenHeaders, headerOption, sampleHeader, secretsHelp, serverSettings } from "./server-settings.ts";

/** Time limit of a test. The server's own limits usually end a test earlier. */
const testTimeoutMs = 60_000;

export const testCommand = serverCommand({
  name: "test",
  summary: "connect to an MCP server, and show the result",
  description: `Connect to an MCP server, by its name or by any address. ${operatorNeeds}`,
  arguments: [["[name]", "name of a server, as headrace tools lists it"]],
  options: {
    url: ["--url <url>", "test a server by its address, before you add it"],
    node: serverSettings.node,
    ...headerOption,
    protocolVersion: serverSettings.protocolVersion,
    json: ["--json", "print the result as the API gives it"],
  },
  examples: [
    "headrace tools test weather",
    `headrace tools test --url https://tools.example.com/mcp --header ${sampleHeader}`,
  ],
  help: [secretsHelp, "Exit code 1 if the server does not work."],
  async run(call, name) {
    const { options, request, connect, terminal } = call;
    if (name !== undefined) refuseSecret(name);
    const { url, node, protocolVersion: revision } = options;
    if ([name, url, node].filter((one) => one !== undefined).length !== 1) {
      throw new CliError("Say which server: by its name, or by --url or --node for any other.", exitCodes.usage);
    }
    if (name !== undefined && options.header !== undefined) {
      throw new CliError("--header needs --url: an existing server has its own headers.", exitCodes.usage);
    }
    const headers = await givenHeaders(options.header, call);
    const body = { name, url, node, headers, protocol_version: revision === "none" ? null : revision };
    const answer = await request("/admin/tool-server-tests", { method: "POST", body, timeoutMs: testTimeoutMs });
    const result = understood(mcpServerTestShape, answer, await connect(), "test of an MCP server");
    const show = () => printTest(terminal, result);
    return { json: answer, show, ...(result.ok ? {} : { failure: failureOf(result, name ?? url ?? "It") }) };
  },
});

function printTest(terminal: Terminal, result: McpServerTestWire): void {
  const { server, revision, instructions, capabilities, tools, prompts, resources, output } = result;
  if (server) {
    const called = [server.title ?? server.name, server.version].filter((part) => part !== null).join(" ");
    const facts: [string, string][] = [
      ["Server", called || "it does not say"],
      ["Revision", revision ?? "-"],
      ["Has", capabilities.join(", ") || "nothing"],
      ["Tools", `${tools.length}`],
      ["Prompts", `${prompts}`],
      ["Resources", `${resources}`],
      ["Took", `${result.duration_ms} ms`],
    ];
    terminal.print(
      formatFacts(
        facts.map(([name, value]) => [name, unhidden(value)]),
        terminal.out,
      ),
    );
  }
  if (instructions !== null) printLines(terminal, "\nIt tells every model:", instructions.split("\n"));
  if (tools.length > 0) {
    terminal.print("");
    printRows(terminal, tools, [
      ["TOOL", ({ name }) => unhidden(name)],
      ["STATE", ({ state }) => state],
      ["SAYS", ({ description }) => unhidden(firstLine(description ?? "-"))],
    ]);
  }
  if (output.length === 0) return;
  if (server) terminal.print("");
  printLines(terminal, "Its process wrote to standard error:", output);
}

function printLines(terminal: Terminal, heading: string, lines: readonly string[]): void {
  terminal.print(heading);
  for (const line of lines) terminal.print(`  ${unhidden(line)}`);
}

function failureOf({ error, duration_ms: ms }: McpServerTestWire, which: string): string {
  const detail = error?.detail ? ` ${error.detail}` : "";
  return `${which} does not work: ${error?.message ?? "it did not say why."}${detail} (after ${ms} ms)`;
}
