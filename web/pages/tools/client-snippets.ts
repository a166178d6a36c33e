// Configuration snippets for MCP clients, each in its vendor's documented form.
import { shellWord } from "../../parts/secrets/snippet-text.ts";

export interface ClientSnippet {
  id: string;
  name: string;
  /** The file for the snippet, or what the client requires. */
  about: string;
  code: string;
}

/** Returns a snippet for each client. `url` is the address of the MCP endpoint. */
export function clientSnippets(url: string): readonly ClientSnippet[] {
  const word = shellWord(url);
  return [
    {
      id: "claude",
      name: "Claude Code",
      about: "Run in a shell. The second line opens a browser, where you sign in and allow access.",
      code: `claude mcp add --transport http --scope user headrace ${word}\nclaude mcp login headrace`,
    },
    {
      id: "codex",
      name: "Codex",
      about:
        "Run in a shell. The command opens a browser, where you sign in and allow access. To sign in again later: codex mcp login headrace",
      code: `codex mcp add headrace --url ${word}`,
    },
    {
      id: "opencode",
      name: "opencode",
      about: "Add to ~/.config/opencode/opencode.json, then run: opencode mcp auth headrace",
      code: JSON.stringify({ mcp: { headrace: { type: "remote", url, enabled: true } } }, null, 2),
    },
    {
      id: "inspector",
      name: "Inspector",
      about:
        "Run in a shell with an API key that has the permission Use tools. Without --cli, Inspector opens in a browser.",
      code: [
        "npx @modelcontextprotocol/inspector --cli \\",
        `  ${word} \\`,
        '  --transport http --header "Authorization: Bearer $HEADRACE_API_KEY" \\',
        "  --method tools/list",
      ].join("\n"),
    },
    {
      id: "ai-sdk",
      name: "AI SDK",
      about: "Use in your program, with an API key that has the permission Use tools.",
      code: [
        "// npm install @ai-sdk/mcp",
        'import { createMCPClient } from "@ai-sdk/mcp";',
        "",
        "const client = await createMCPClient({",
        "  transport: {",
        '    type: "http",',
        `    url: ${JSON.stringify(url)},`,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the template is part of the snippet's code
        "    headers: { Authorization: `Bearer ${process.env.HEADRACE_API_KEY}` },",
        "  },",
        "});",
        "const tools = await client.tools();",
      ].join("\n"),
    },
  ];
}
