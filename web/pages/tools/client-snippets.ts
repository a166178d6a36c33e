// How clients of the protocol are told of this server, each as its maker documents it.
import { shellWord } from "../../parts/secrets/snippet-text.ts";

export interface ClientSnippet {
  id: string;
  name: string;
  /** Where it belongs, or what it needs. */
  about: string;
  code: string;
}

/** `url`: of the endpoint. */
export function clientSnippets(url: string): readonly ClientSnippet[] {
  const word = shellWord(url);
  return [
    {
      id: "claude",
      name: "Claude Code",
      about: "In a shell. The second line opens a browser, where you sign in and agree.",
      code: `claude mcp add --transport http --scope user headrace ${word}\nclaude mcp login headrace`,
    },
    {
      id: "codex",
      name: "Codex",
      about: "In a shell. It opens a browser, where you sign in and agree; later: codex mcp login headrace",
      code: `codex mcp add headrace --url ${word}`,
    },
    {
      id: "opencode",
      name: "opencode",
      about: "In ~/.config/opencode/opencode.json, beside what is there; then run: opencode mcp auth headrace",
      code: JSON.stringify({ mcp: { headrace: { type: "remote", url, enabled: true } } }, null, 2),
    },
    {
      id: "inspector",
      name: "Inspector",
      about: "In a shell that has an API key with the permission Use tools. Without --cli it opens in a browser.",
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
      about: "In your program, with an API key that has the permission Use tools.",
      code: [
        "// npm install @ai-sdk/mcp",
        'import { createMCPClient } from "@ai-sdk/mcp";',
        "",
        "const client = await createMCPClient({",
        "  transport: {",
        '    type: "http",',
        `    url: ${JSON.stringify(url)},`,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the program has the template
        "    headers: { Authorization: `Bearer ${process.env.HEADRACE_API_KEY}` },",
        "  },",
        "});",
        "const tools = await client.tools();",
      ].join("\n"),
    },
  ];
}
