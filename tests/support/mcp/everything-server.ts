// A server that does everything that the protocol has, under the names that the official conformance suite asks for.
import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  fromJsonSchema,
  type GetPromptResult,
  type InputRequests,
  type InputRequiredResult,
  inputRequired,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { elicitedDefaults, elicitedEnums, schemaOf2020 } from "./everything-schemas.ts";
import type { Notifier } from "./mcp-server.ts";

type Arguments = Record<string, unknown>;
type Run = (args: Arguments, context: ServerContext) => Promise<CallToolResult | InputRequiredResult>;
type Schema = Record<string, unknown>;

const red = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const states = createRequestStateCodec<Record<string, unknown>>({ key: crypto.getRandomValues(new Uint8Array(32)) });

export function makeEverythingServer(notifier: Notifier): McpServer {
  const server = new McpServer(
    { name: "everything", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        logging: {},
        completions: {},
      },
      requestState: { verify: states.verify },
    },
  );
  addAnswers(server);
  addQuestions(server);
  addRounds(server);
  addTriggers(server, notifier);
  addResources(server);
  addPrompts(server);
  server.server.setRequestHandler("logging/setLevel", async () => ({}));
  server.server.setRequestHandler("completion/complete", async () => ({
    completion: { values: ["paris", "park"], total: 2, hasMore: false },
  }));
  return server;
}

function add(server: McpServer, name: string, run: Run, schema: Schema = { type: "object", properties: {} }): void {
  server.registerTool(name, { description: `Does ${name}.`, inputSchema: fromJsonSchema<Arguments>(schema) }, run);
}

function said(text: string): CallToolResult {
  return { content: [{ type: "text", text }] };
}

/** Tools whose answer is all that there is to them, with what they tell meanwhile. */
function addAnswers(server: McpServer): void {
  add(server, "test_simple_text", async () => said("This is a simple text response for testing."));
  add(server, "test_image_content", async () => ({ content: [{ type: "image", data: red, mimeType: "image/png" }] }));
  add(server, "test_audio_content", async () => ({
    content: [{ type: "audio", data: silence, mimeType: "audio/wav" }],
  }));
  add(server, "test_embedded_resource", async () => ({
    content: [embedded("test://embedded-resource", "text/plain")],
  }));
  add(server, "test_multiple_content_types", async () => ({
    content: [
      { type: "text", text: "Multiple content types test:" },
      { type: "image", data: red, mimeType: "image/png" },
      embedded("test://mixed-content-resource", "application/json"),
    ],
  }));
  add(server, "test_error_handling", async () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  add(server, "test_streaming_elicitation", async () => said("Nothing was asked."));
  add(server, "test_logging_tool", async (_, { mcpReq }) => {
    await mcpReq.log("info", "test_logging_tool ran");
    return said("It was logged.");
  });
  add(server, "test_tool_with_logging", async (_, { mcpReq }) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
      await Bun.sleep(50);
    }
    return said("It was logged.");
  });
  add(server, "test_tool_with_progress", async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
      await mcpReq.notify({ method: "notifications/progress", params });
      await Bun.sleep(50);
    }
    return said(String(progressToken ?? "no-progress-token"));
  });
  add(server, "test_reconnection", async (_, { http }) => {
    http?.closeSSE?.();
    await Bun.sleep(100);
    return said("It came after the stream had been closed.");
  });
  add(server, "json_schema_2020_12_tool", async (args) => said(JSON.stringify(args)), schemaOf2020);
  const mirrored = { region: { type: "string", "x-mcp-header": "Region" }, level: { type: "integer" } };
  const headed = { type: "object", properties: mirrored };
  add(server, "test_x_mcp_header", async ({ region }) => said(`region=${region ?? "<none>"}`), headed);
}

function embedded(uri: string, mimeType: string) {
  const text =
    mimeType === "application/json" ? '{"test":"data","value":123}' : "This is an embedded resource content.";
  return { type: "resource" as const, resource: { uri, mimeType, text } };
}

/** Tools that ask back whoever speaks whichever revision: where there are sessions, the package asks while they are at it. */
function addQuestions(server: McpServer): void {
  const one = (name: string) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });
  const question = (name: string, ask: (args: Arguments) => InputRequests[string], schema?: Schema) =>
    add(
      server,
      name,
      async (args, { mcpReq }) => {
        const answer = mcpReq.inputResponses?.["answer"];
        return answer === undefined
          ? inputRequired({ inputRequests: { answer: ask(args) } })
          : said(`It was answered: ${JSON.stringify(answer)}`);
      },
      schema,
    );
  question("test_sampling", ({ prompt }) => asked.sample(String(prompt)), one("prompt"));
  question(
    "test_elicitation",
    ({ message }) => asked.form(String(message), fields({ response: { type: "string" } })),
    one("message"),
  );
  question("test_elicitation_sep1034_defaults", () =>
    asked.form("Review", { type: "object", properties: elicitedDefaults }),
  );
  question("test_elicitation_sep1330_enums", () => asked.form("Choose", { type: "object", properties: elicitedEnums }));
}

type Form = Exclude<Parameters<typeof inputRequired.elicit>[0], { mode: "url" }>["requestedSchema"];

const asked = {
  form: (message: string, requestedSchema: Form) => inputRequired.elicit({ message, requestedSchema }),
  name: () =>
    inputRequired.elicit({ message: "What is your name?", requestedSchema: fields({ name: { type: "string" } }) }),
  sure: () => inputRequired.elicit({ message: "Are you sure?", requestedSchema: fields({ ok: { type: "boolean" } }) }),
  sample: (text: string) =>
    inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text } }], maxTokens: 100 }),
};

function fields<P extends Record<string, { type: "string" } | { type: "boolean" }>>(properties: P) {
  return { type: "object" as const, properties, required: Object.keys(properties) };
}

/** Tools that ask back in ways that only revisions since 2026-07-28 have: by an answer that is not the last one. */
function addRounds(server: McpServer): void {
  const ask = (inputRequests: InputRequests, requestState?: string) =>
    inputRequired({ inputRequests, ...(requestState === undefined ? {} : { requestState }) });
  const round = (name: string, run: Run) => add(server, `test_input_required_result_${name}`, run);
  add(server, "test_missing_capability", async (_, { mcpReq }) =>
    mcpReq.inputResponses?.["llm_answer"] === undefined ? ask({ llm_answer: asked.sample("Say pong") }) : said("pong"),
  );
  round("elicitation", async (_, { mcpReq }) => {
    const name = acceptedContent<{ name: string }>(mcpReq.inputResponses, "user_name")?.name;
    return typeof name === "string" ? said(`Hello, ${name}!`) : ask({ user_name: asked.name() });
  });
  round("sampling", async (_, { mcpReq }) => {
    const answer = mcpReq.inputResponses?.["capital_question"];
    if (answer === undefined) return ask({ capital_question: asked.sample("What is the capital of France?") });
    return said(`Sampling response: ${JSON.stringify(answer)}`);
  });
  round("list_roots", async (_, { mcpReq }) => {
    const answer = mcpReq.inputResponses?.["client_roots"];
    return answer === undefined ? ask({ client_roots: inputRequired.listRoots() }) : said(JSON.stringify(answer));
  });
  for (const name of ["request_state", "tampered_state"])
    round(name, async (_, { mcpReq }) => {
      const sure = acceptedContent(mcpReq.inputResponses, "confirm") !== undefined;
      if (sure && mcpReq.requestState() !== undefined) return said("state-ok: the state came back as it was");
      return ask({ confirm: asked.sure() }, await states.mint({ name, nonce: crypto.randomUUID() }));
    });
  round("multiple_inputs", async (_, { mcpReq }) => {
    const answers = mcpReq.inputResponses ?? {};
    if (["user_name", "greeting", "client_roots"].every((key) => key in answers)) return said(JSON.stringify(answers));
    const all = { user_name: asked.name(), greeting: asked.sample("Greet"), client_roots: inputRequired.listRoots() };
    return ask(all, await states.mint({ nonce: crypto.randomUUID() }));
  });
  round("multi_round", async (_, { mcpReq }) => {
    const state = mcpReq.requestState<Record<string, unknown>>();
    const [next, step] = state === undefined ? [1, "step1"] : [2, "step2"];
    if (state?.["round"] === 2) return said(`Both rounds are over: ${JSON.stringify(mcpReq.inputResponses)}`);
    return ask({ [step]: asked.name() }, await states.mint({ round: next, nonce: crypto.randomUUID() }));
  });
  round("capabilities", async (_, { mcpReq }) => {
    if (mcpReq.inputResponses !== undefined) return said("What was asked for came.");
    const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
    const can = envelope[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
    const requests: InputRequests = {
      ...(can?.elicitation === undefined ? {} : { user_name: asked.name() }),
      ...(can?.sampling === undefined ? {} : { greeting: asked.sample("Greet") }),
      ...(can?.roots === undefined ? {} : { client_roots: inputRequired.listRoots() }),
    };
    return Object.keys(requests).length === 0 ? said("Nothing can be asked.") : ask(requests);
  });
}

function addTriggers(server: McpServer, notifier: Notifier): void {
  add(server, "test_trigger_tool_change", async () => {
    notifier.toolsChanged();
    return said("Told.");
  });
  add(server, "test_trigger_prompt_change", async () => {
    notifier.promptsChanged();
    return said("Told.");
  });
  add(server, "test_trigger_resource_update", async () => {
    notifier.resourceUpdated("test://watched-resource");
    return said("Told.");
  });
}

function addResources(server: McpServer): void {
  const text = (name: string, uri: string) =>
    server.registerResource(name, uri, { title: name, mimeType: "text/plain" }, async () => ({
      contents: [{ uri, mimeType: "text/plain", text: `This is the content of ${name}.` }],
    }));
  text("static-text", "test://static-text");
  text("watched-resource", "test://watched-resource");
  const binary = "test://static-binary";
  server.registerResource("static-binary", binary, { title: "Binary", mimeType: "image/png" }, async () => ({
    contents: [{ uri: binary, mimeType: "image/png", blob: red }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { mimeType: "application/json" }, async (uri, { id }) => ({
    contents: [{ uri: uri.toString(), mimeType: "application/json", text: JSON.stringify({ id, templateTest: true }) }],
  }));
  server.server.setRequestHandler("resources/subscribe", async () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
}

function addPrompts(server: McpServer): void {
  const two = fromJsonSchema<{ arg1: string; arg2: string }>(
    fields({ arg1: { type: "string" }, arg2: { type: "string" } }),
  );
  server.registerPrompt("test_simple_prompt", { description: "Says one thing." }, async () =>
    asks("This is a simple prompt."),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description: "Says two things.", argsSchema: two },
    async ({ arg1, arg2 }) => asks(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`),
  );
  const place = fromJsonSchema<{ resourceUri: string }>(fields({ resourceUri: { type: "string" } }));
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "Shows a resource.", argsSchema: place },
    async ({ resourceUri }) => ({
      messages: [{ role: "user", content: embedded(resourceUri, "text/plain") }, ...asks("Read it.").messages],
    }),
  );
  server.registerPrompt("test_prompt_with_image", { description: "Shows an image." }, async () => ({
    messages: [
      { role: "user", content: { type: "image", data: red, mimeType: "image/png" } },
      ...asks("Look at it.").messages,
    ],
  }));
  server.registerPrompt(
    "test_input_required_result_prompt",
    { description: "Asks first." },
    async ({ mcpReq }: ServerContext) => {
      const name = acceptedContent<{ context: string }>(mcpReq.inputResponses, "user_context");
      if (name !== undefined) return asks(`Use this: ${name.context}`);
      const requestedSchema = fields({ context: { type: "string" } });
      return inputRequired({
        inputRequests: { user_context: inputRequired.elicit({ message: "What with?", requestedSchema }) },
      });
    },
  );
}

function asks(text: string): GetPromptResult {
  return { messages: [{ role: "user", content: { type: "text", text } }] };
}
