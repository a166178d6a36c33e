// Clients of MCP servers as their makers publish them: each signs in by OAuth in a browser, lists and calls.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { auth, createMCPClient, type OAuthClientProvider } from "@ai-sdk/mcp";
import { claudeProgram, type Ended, opencodeProgram, type ProgramHome, programPath } from "../agents/agent-program.ts";
import type { AgentUpstream } from "../agents/agent-upstream.ts";
import { agentModel } from "../agents/agent-world.ts";
import type { Call } from "../agents/scripted-model.ts";
import { type TestServer, until } from "../headrace.ts";
import { freePort } from "../nginx-site.ts";

/** Where a client is: in a home of its own, with a model for those that have to be told by one what to do. */
export interface ClientPlace {
  home: ProgramHome;
  /** The endpoint of tools. */
  url: string;
  model: { server: Pick<TestServer, "baseUrl" | "key">; upstream: AgentUpstream };
  /** The address of a document that describes Claude Code, in the place of its maker's, which tests cannot reach. */
  document?: string;
  /** Does what a person does in a browser with the address that the client opens, until the client has been told. */
  visit(url: string): Promise<void>;
}

export interface ToolClient {
  signIn(place: ClientPlace): Promise<void>;
  /** Names of tools, as the client has them; `known`: one of them, for a client that tells only what its model is shown. */
  tools(place: ClientPlace, known: string): Promise<string[]>;
  /** The text of what the tool answered. */
  call(place: ClientPlace, tool: string): Promise<string>;
}

const deadlineMs = 40_000;

/** `provider` of each home, as the AI SDK keeps nothing by itself. */
const providers = new WeakMap<ProgramHome, OAuthClientProvider>();

const aiSdk: ToolClient = {
  async signIn({ home, url, visit }) {
    let answered: URLSearchParams | undefined;
    const listener = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        answered = new URL(request.url).searchParams;
        return new Response("Signed in.");
      },
    });
    let opened: URL | undefined;
    const redirect = `http://127.0.0.1:${listener.port}/callback`;
    const provider = keepingProvider(redirect, (to) => {
      opened = to;
    });
    providers.set(home, provider);
    await createMCPClient({ transport: { type: "http", url, authProvider: provider } }).catch((error: Error) => {
      if (opened === undefined) throw error;
    });
    await visit(String(opened));
    await until(() => answered !== undefined, "the browser came back");
    const said = Object.fromEntries(answered ?? []);
    const given = {
      authorizationCode: said["code"] ?? "",
      callbackState: said["state"] ?? "",
      callbackIssuer: said["iss"] ?? "",
    };
    const became = await auth(provider, { serverUrl: url, ...given });
    await listener.stop(true);
    if (became !== "AUTHORIZED") throw new Error(`The AI SDK says ${became}.`);
  },
  tools: (place) => withAiSdk(place, async (client) => Object.keys(await client.tools())),
  call: (place, tool) =>
    withAiSdk(place, async (client) => {
      const execute = (await client.tools())[tool]?.execute;
      if (execute === undefined) throw new Error(`The AI SDK has no ${tool}.`);
      return textOf(await execute({ text: "hello" }, { toolCallId: "1", messages: [], context: undefined }));
    }),
};

async function withAiSdk<T>(
  { home, url }: ClientPlace,
  work: (client: Awaited<ReturnType<typeof createMCPClient>>) => Promise<T>,
): Promise<T> {
  const authProvider = providers.get(home);
  if (authProvider === undefined) throw new Error("Nobody has signed in.");
  const client = await createMCPClient({ transport: { type: "http", url, authProvider } });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

function keepingProvider(redirectUrl: string, opened: (url: URL) => void): OAuthClientProvider {
  const kept: {
    tokens?: Awaited<ReturnType<OAuthClientProvider["tokens"]>>;
    client?: Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>;
    verifier?: string;
  } = {};
  const state = crypto.randomUUID();
  return {
    redirectUrl,
    clientMetadata: {
      client_name: "AI SDK",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void Object.assign(kept, { tokens }),
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void Object.assign(kept, { client }),
    codeVerifier: () => kept.verifier ?? "",
    saveCodeVerifier: (verifier) => void Object.assign(kept, { verifier }),
    state: () => state,
    redirectToAuthorization: opened,
  };
}

/** A Node.js that is new enough for it. */
function newerNode(): string {
  const chosen = readdirSync(programPath()).find((name) => name.startsWith("node-linux-"));
  return programPath(chosen ?? "", "bin", "node");
}

const inspectorCommand = (): string[] => [
  newerNode(),
  programPath("@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"),
];

const inspector: ToolClient = {
  async signIn(place) {
    const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
    const env = { MCP_AUTO_OPEN_ENABLED: "true", MCP_INSPECTOR_SECRET_STORE: "file" };
    const args = ["--cli", place.url, "--transport", "http", "--callback-url", callback, "--method", "tools/list"];
    await signedInBy(
      place,
      [...inspectorCommand(), ...args],
      env,
      (said) => /Please navigate to: (\S+)/.exec(said)?.[1],
    );
  },
  async tools(place) {
    const { result } = await inspect(place, ["--method", "tools/list"]);
    return (result["tools"] as { name: string }[]).map(({ name }) => name);
  },
  async call(place, tool) {
    const { result } = await inspect(place, [
      "--method",
      "tools/call",
      "--tool-name",
      tool,
      "--tool-arg",
      "text=hello",
    ]);
    return textOf(result);
  },
};

async function inspect(
  { home, url }: ClientPlace,
  args: readonly string[],
): Promise<{ result: Record<string, unknown> }> {
  const whole = ["--cli", url, "--transport", "http", "--stored-auth-only", ...args, "--format", "json"];
  const env = { MCP_INSPECTOR_SECRET_STORE: "file" };
  const ended = await home.run([...inspectorCommand(), ...whole], home.home, env);
  // Where a tool says that it failed, the result is said all the same.
  const isResult = ended.code === 0 || (ended.code === 5 && ended.stdout.includes('"result"'));
  if (!isResult) throw new Error(`The inspector ended with ${ended.code}: ${ended.stdout}\n${ended.stderr}`);
  return JSON.parse(ended.stdout) as { result: Record<string, unknown> };
}

/** The inspector's page; `address` has it connect. */
export async function startInspector({ home, url }: ClientPlace): Promise<{ address: string; stop(): Promise<void> }> {
  const [port, sandbox] = [await freePort(), await freePort()];
  const token = crypto.randomUUID();
  const running = home.begin([...inspectorCommand(), "--web"], home.home, {
    ...{ MCP_AUTO_OPEN_ENABLED: "false", MCP_INSPECTOR_SECRET_STORE: "file", MCP_INSPECTOR_API_TOKEN: token },
    ...{ CLIENT_PORT: String(port), MCP_SANDBOX_PORT: String(sandbox) },
  });
  const origin = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(origin).then(
      ({ ok }) => ok,
      () => running.hasEnded(),
    );
  await until(answers, "the inspector has its page", deadlineMs);
  return {
    address: `${origin}/?${new URLSearchParams({ serverUrl: url, transport: "http", autoConnect: token })}`,
    async stop() {
      running.stop();
      // What a test has to say of a page is more than that this had to be ended.
      await running.ended.catch(() => {});
    },
  };
}

interface Offered {
  name?: string;
  tools?: { name: string }[];
}

const codex: ToolClient = {
  async signIn(place) {
    configureCodex(place);
    const command = ["node", programPath(".bin", "codex"), "mcp", "login", "gw", "--oauth-client-registration", "dcr"];
    await signedInBy(place, command, {}, (said) => /^(http\S+\/\S*authorize\?\S+)/m.exec(said)?.[1]);
  },
  async tools(place, known) {
    await asCodex(place, { tool: nameInCodex(known), namespace: "mcp__gw", arguments: { text: "hello" } });
    const offered = place.model.upstream.served.flatMap(({ body }) => body["tools"] as Offered[]);
    const names = offered.filter(({ name }) => name === "mcp__gw").flatMap(({ tools = [] }) => tools);
    return [...new Set(names.map(({ name }) => name))];
  },
  async call(place, tool) {
    const { stdout } = await asCodex(place, {
      tool: nameInCodex(tool),
      namespace: "mcp__gw",
      arguments: { text: "hello" },
    });
    const items = linesOf(stdout).map((line) => line["item"] as Record<string, unknown> | undefined);
    const found = items.findLast((item) => item?.["type"] === "mcp_tool_call");
    return textOf(found?.["result"]);
  },
};

function configureCodex({ home, url, model }: ClientPlace, credential = ""): void {
  const folder = join(home.home, ".codex");
  mkdirSync(folder, { recursive: true });
  const text = `mcp_oauth_credentials_store = "file"
check_for_update_on_startup = false
model = "${agentModel}"
model_provider = "gateway"
[analytics]
enabled = false
[model_providers.gateway]
name = "gateway"
base_url = "${model.server.baseUrl}"
env_key = "MODEL_KEY"
wire_api = "responses"
[mcp_servers.gw]
url = "${url}"
default_tools_approval_mode = "approve"
${credential}
`;
  writeFileSync(join(folder, "config.toml"), text);
}

/** It takes no hyphens. */
const nameInCodex = (tool: string): string => tool.replaceAll("-", "_");

async function asCodex(place: ClientPlace, call: Call): Promise<Ended> {
  place.model.upstream.work({ steps: [call], end: "That was all." });
  const command = ["node", programPath(".bin", "codex"), "exec", "--json", "--skip-git-repo-check"];
  const ended = await place.home.run([...command, "Ask the tool."], place.home.home, {
    MODEL_KEY: place.model.server.key,
  });
  if (ended.code !== 0) throw new Error(`Codex ended with ${ended.code}: ${ended.stdout}\n${ended.stderr}`);
  return ended;
}

const claude: ToolClient = {
  async signIn(place) {
    await addToClaude(place);
    const described = place.document === undefined ? {} : { MCP_OAUTH_CLIENT_METADATA_URL: place.document };
    await signInAtTerminal(place, [claudeProgram(), "mcp", "login", "gw"], { ...quiet, ...described });
  },
  async tools(place) {
    const [first] = linesOf((await asClaude(place, undefined)).stdout);
    const names = (first?.["tools"] ?? []) as string[];
    return names.filter((name) => name.startsWith("mcp__gw__")).map((name) => name.slice("mcp__gw__".length));
  },
  async call(place, tool) {
    const { stdout } = await asClaude(place, { tool: `mcp__gw__${tool}`, arguments: { text: "hello" } });
    const contents = linesOf(stdout)
      .filter(({ type }) => type === "user")
      .flatMap(({ message }) => (message as { content: { type: string; content?: unknown }[] }).content);
    return textOf(contents.findLast(({ type }) => type === "tool_result"));
  },
};

/** For a program that wants a terminal, and opens a browser by itself. */
async function signInAtTerminal(place: ClientPlace, command: readonly string[], env: Readonly<Record<string, string>>) {
  const opened = join(place.home.home, "opened");
  const browser = script(place, "browser", `printf %s "$1" > ${opened}.part && mv ${opened}.part ${opened}`);
  const terminal = fileURLToPath(new URL("in-terminal.py", import.meta.url));
  const whole = ["python3", terminal, String(deadlineMs / 1000), ...command];
  const address = () => (existsSync(opened) ? readFileSync(opened, "utf8") : undefined);
  await signedInBy(place, whole, { BROWSER: browser, TERM: "xterm", ...env }, address);
  rmSync(opened);
}

/** One of a folder of scripts; gives its path. */
function script({ home }: ClientPlace, name: string, text: string): string {
  const folder = join(home.home, "bin");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Where programs have the names that people type. */
function typingEnv(place: ClientPlace): Record<string, string> {
  script(place, "claude", `exec ${claudeProgram()} "$@"`);
  script(place, "codex", `exec node ${programPath(".bin", "codex")} "$@"`);
  script(place, "opencode", `exec ${opencodeProgram()} "$@"`);
  script(place, "xdg-open", 'exec "$BROWSER" "$@"');
  script(place, "npx", `shift; exec ${inspectorCommand().join(" ")} "$@"`);
  const path = `${join(place.home.home, "bin")}:${process.env["PATH"]}`;
  return { ...quiet, PATH: path, HEADRACE_API_KEY: place.model.server.key };
}

/** Types it in a shell, and signs in once the browser opens. */
export function signInByTyping(place: ClientPlace, code: string): Promise<void> {
  return signInAtTerminal(place, ["sh", "-ec", code], typingEnv(place));
}

/** Types it in a shell: what was said. */
export async function typed(place: ClientPlace, code: string): Promise<string> {
  const { stdout, stderr } = await place.home.run(["sh", "-ec", code], place.home.home, typingEnv(place));
  return `${stdout}\n${stderr}`;
}

async function addToClaude({ home, url }: ClientPlace, more: readonly string[] = []): Promise<void> {
  const add = [claudeProgram(), "mcp", "add", "--transport", "http", "--scope", "user", "gw", url, ...more];
  const added = await home.run(add, home.home, quiet);
  if (added.code !== 0) throw new Error(`Claude Code ended with ${added.code}: ${added.stderr}`);
}

/** Without `MCP_CONNECTION_NONBLOCKING`, Claude Code may begin on a busy machine before the MCP server is connected. */
const quiet = {
  ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", ENABLE_TOOL_SEARCH: "false" },
  MCP_CONNECTION_NONBLOCKING: "0",
};

async function asClaude({ home, model }: ClientPlace, call: Call | undefined): Promise<Ended> {
  model.upstream.work({ steps: call === undefined ? [] : [call], end: "That was all." });
  const options = ["--output-format", "stream-json", "--verbose", "--allowedTools", "mcp__gw", "--model", agentModel];
  const { baseUrl, key } = model.server;
  const env = { ...quiet, ANTHROPIC_BASE_URL: baseUrl.replace(/\/v1$/, ""), ANTHROPIC_AUTH_TOKEN: key };
  const ended = await home.run([claudeProgram(), "-p", "Ask the tool.", ...options], home.home, env);
  if (ended.code !== 0) throw new Error(`Claude Code ended with ${ended.code}: ${ended.stdout}\n${ended.stderr}`);
  return ended;
}

/** Agents that are given the key with which they ask for models for tools as well. */
export const agentsWithKey: Readonly<
  Record<string, { client: ToolClient; useKey(place: ClientPlace): Promise<void> }>
> = {
  Codex: {
    client: codex,
    useKey: async (place) => configureCodex(place, 'bearer_token_env_var = "MODEL_KEY"'),
  },
  "Claude Code": {
    client: claude,
    useKey: (place) => addToClaude(place, ["--header", `Authorization: Bearer ${place.model.server.key}`]),
  },
};

export const toolClients: Readonly<Record<string, ToolClient>> = {
  "AI SDK": aiSdk,
  "MCP inspector": inspector,
  Codex: codex,
  "Claude Code": claude,
};

/** Runs the program until it has signed in; `address`: what it wants opened, as far as it has said so. */
async function signedInBy(
  { home, visit }: ClientPlace,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  address: (said: string) => string | undefined,
): Promise<void> {
  const running = home.begin(command, mkdtempSync(join(home.home, "work-")), env);
  await until(() => address(running.said()) !== undefined || running.hasEnded(), "the program wants a browser");
  const found = address(running.said());
  if (found === undefined) throw new Error(`${command.join(" ")} wants no browser: ${running.said()}`);
  await visit(found);
  const { code, stdout, stderr } = await running.ended;
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${stdout}\n${stderr}`);
}

function linesOf(stdout: string): Record<string, unknown>[] {
  const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** The texts of a tool's answer, in whichever shape a client gives it. */
function textOf(answer: unknown): string {
  const { content } = (answer ?? {}) as { content?: string | { text?: string }[] };
  return typeof content === "string" ? content : (content ?? []).map(({ text = "" }) => text).join("\n");
}
