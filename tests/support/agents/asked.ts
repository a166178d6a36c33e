// What a client asks a model server, read from a request in any of the three formats, as a scripted model looks at it.

export type Body = Record<string, unknown>;
export type Api = "chat" | "responses" | "messages";

const paths: Readonly<Record<string, Api>> = {
  "/v1/chat/completions": "chat",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
};

/** The format in which a model is asked by a request with this path and query; undefined where it asks none. */
export function apiOf(url: string): Api | undefined {
  return paths[new URL(url, "http://model").pathname];
}

/** A request as the model sees it: no format is left in it. */
export interface Asked {
  api: Api;
  /** Names of the tools that are offered; those with one text instead of arguments are custom. */
  tools: ReadonlyMap<string, "function" | "custom">;
  /** The text of each message in the conversation, instructions first. */
  said: readonly string[];
  /** What the tools answered, by the id of the call, in their order. */
  results: ReadonlyMap<string, string>;
  /** Whether the conversation is to be made short by an item for it, as OpenAI's own API knows it. */
  isToCompact?: boolean;
}

export function askedOf(api: Api, body: Body): Asked {
  const read = { chat: readChat, responses: readResponses, messages: readMessages }[api];
  return { api, ...read(body) };
}

type Read = Omit<Asked, "api">;

function readChat(body: Body): Read {
  const tools = objects(body["tools"]).map((tool): [string, "function"] => [
    text((tool["function"] as Body)["name"]),
    "function",
  ]);
  const messages = objects(body["messages"]);
  const results = messages
    .filter(({ role }) => role === "tool")
    .map(({ tool_call_id: id, content }): [string, string] => [text(id), textOf(content)]);
  return { tools: new Map(tools), said: messages.map(({ content }) => textOf(content)), results: new Map(results) };
}

function readResponses(body: Body): Read {
  const { input } = body;
  const items = typeof input === "string" ? [{ role: "user", content: input }] : objects(input);
  // Codex puts those of an MCP server into a namespace.
  const offered = objects(body["tools"]).flatMap((tool) =>
    tool["type"] === "namespace" ? objects(tool["tools"]) : [tool],
  );
  const tools = offered.map(({ name, type }): [string, "function" | "custom"] => [
    text(name),
    type === "custom" ? "custom" : "function",
  ]);
  const results = items
    .filter(({ type }) => type === "function_call_output" || type === "custom_tool_call_output")
    .map(({ call_id: id, output }): [string, string] => [text(id), textOf(output)]);
  const said = items
    .filter((item) => "role" in item || item["type"] === "compaction")
    .map((item) => textOf(item["content"] ?? item["encrypted_content"]));
  return {
    ...{ tools: new Map(tools), said: [textOf(body["instructions"]), ...said], results: new Map(results) },
    isToCompact: items.at(-1)?.["type"] === "compaction_trigger",
  };
}

function readMessages(body: Body): Read {
  const tools = objects(body["tools"]).map(({ name }): [string, "function"] => [text(name), "function"]);
  const messages = objects(body["messages"]);
  const results = messages
    .flatMap(({ content }) => objects(content))
    .filter(({ type }) => type === "tool_result")
    .map(({ tool_use_id: id, content }): [string, string] => [text(id), textOf(content)]);
  const said = messages.map(({ content }) => textOf(content));
  return { tools: new Map(tools), said: [textOf(body["system"]), ...said], results: new Map(results) };
}

/** Content is a text, or parts of which some have one. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return objects(content)
    .map((part) => text(part["text"]))
    .join("\n");
}

const text = (value: unknown) => (typeof value === "string" ? value : "");

function objects(value: unknown): Body[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "object" && entry !== null) : [];
}
