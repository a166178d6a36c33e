// The program that the conformance suite runs as a client: it asks through the gateway, where it has been told of one.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const revision = process.env["MCP_CONFORMANCE_PROTOCOL_VERSION"] ?? "";
/** What the suite says beside: which calls are to be made. */
const context = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as {
  toolCalls?: { name: string; arguments: Record<string, unknown> }[];
  client_id?: string;
  client_secret?: string;
};

/**
 * What is asked of the test: to put the suite's server behind the gateway (POST; it says where that is), to connect a person's account
 * there (PUT), or to take it away (DELETE).
 */
export interface DriverAsks {
  url: string;
  /** Its settings `oauth`, where it is asked as a person. */
  oauth?: { client_id?: string; client_secret?: string };
}
export interface DriverTarget {
  url: string;
  headers: Record<string, string>;
}

/** The variable that names who is asked; left out: the suite's server is asked itself. */
export const driverVariable = "HEADRACE_TEST_CONTROL";

const call = (client: Client, name: string, args: Record<string, unknown> = {}) =>
  client.callTool({ name, arguments: args });

const scenarios: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  initialize: (client) => client.listTools(),
  async tools_call(client) {
    await client.listTools();
    await call(client, "add_numbers", { a: 5, b: 3 });
  },
  "request-metadata": async (client) => client.listTools().catch(() => {}),
  "elicitation-sep1034-client-defaults": (client) => call(client, "test_client_elicitation_defaults"),
  "sse-retry": (client) => call(client, "test_reconnection"),
  async "http-standard-headers"(client) {
    const [{ tools }, { resources }, { prompts }] = [
      await client.listTools(),
      await client.listResources(),
      await client.listPrompts(),
    ];
    await call(client, tools[0]?.name ?? "");
    await client.readResource({ uri: resources[0]?.uri ?? "" });
    await client.getPrompt({ name: prompts[0]?.name ?? "", arguments: {} });
  },
  async "http-custom-headers"(client) {
    await client.listTools();
    for (const { name, arguments: args } of context.toolCalls ?? []) await call(client, name, args);
  },
  async "http-invalid-tool-headers"(client) {
    const { tools } = await client.listTools();
    for (const { name } of tools) await call(client, name, { region: "us-west1" }).catch(() => {});
  },
  async "sep-2322-client-request-state"(client) {
    for (const name of ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated"]) await call(client, name);
    await call(client, "test_mrtr_no_result_type").catch(() => {});
  },
  "json-schema-ref-no-deref": (client) => client.listTools(),
  async "json-schema-2020-12-preservation"(client) {
    const { tools } = await client.listTools();
    const schema = tools.find(({ name }) => name === "json_schema_2020_12_tool")?.inputSchema;
    await call(client, "json_schema_echo", { schema });
  },
};

/** People connect as often as they are told to; this one has had enough at some time. */
const maxConnects = 3;

/** Lists and calls as a person, who connects an account where it is missing, or gives too few rights. */
async function asPerson(server: string): Promise<void> {
  const { client_id, client_secret } = context;
  const oauth = client_id === undefined ? {} : { client_id, ...(client_secret !== undefined && { client_secret }) };
  const place = await placeOf({ url: server, oauth });
  let connects = 0;
  const connected = async (ask: () => Promise<object>): Promise<void> => {
    for (;;) {
      const answer = JSON.stringify(await ask());
      if (!answer.includes("connect your account there") && !answer.includes("connect_account")) return;
      if (connects++ === maxConnects) throw new Error(answer);
      const page = await sendToDriver({ url: server }, "PUT");
      if (!page?.ok) throw new Error(`Not connected: ${await page?.text()}`);
    }
  };
  const client = new Client({ name: "test-client", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(place.url), { requestInit: { headers: place.headers } }),
  );
  try {
    await connected(() => client.listTools());
    await connected(() => call(client, "test-tool"));
  } finally {
    await client.close();
    await sendToDriver({ url: server }, "DELETE");
  }
}

async function drive(server: string): Promise<void> {
  if (scenario.startsWith("auth/")) return await asPerson(server);
  const run = scenarios[scenario];
  if (run === undefined) throw new Error(`Nobody has said what to do for ${scenario}.`);
  const client = new Client(
    { name: "test-client", version: "1.0.0" },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } }, roots: { listChanged: true }, sampling: {} },
      versionNegotiation: { mode: revision === "2026-07-28" ? "auto" : "legacy" },
    },
  );
  client.setRequestHandler("elicitation/create", async () => ({
    action: "accept" as const,
    content: scenario.startsWith("sep-2322") ? { confirmed: true } : {},
  }));
  const { url, headers } = await placeOf({ url: server });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  await run(client);
  await transport.terminateSession().catch(() => {});
  await client.close();
  // Else the gateway would stay connected to the suite's server, which waits for that before it ends.
  await sendToDriver({ url: server }, "DELETE");
}

async function placeOf(asks: DriverAsks): Promise<DriverTarget> {
  const response = await sendToDriver(asks, "POST");
  return response === undefined ? { url: asks.url, headers: {} } : ((await response.json()) as DriverTarget);
}

async function sendToDriver(asks: DriverAsks, method: "POST" | "PUT" | "DELETE"): Promise<Response | undefined> {
  const control = process.env[driverVariable];
  return control === undefined ? undefined : await fetch(control, { method, body: JSON.stringify(asks) });
}

if (import.meta.main) {
  await drive(process.argv.at(-1) ?? "");
  process.exit(0);
}
