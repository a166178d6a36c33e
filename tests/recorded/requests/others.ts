// Recorded requests of the other endpoints: tasks, lists, files, MCP.
import type { Models } from "../models.ts";
import type { Json } from "../written-replies.ts";
import { type RecordedRequest, recorded } from "./request.ts";

const documents = ["One", { text: "Two" }, "Three"];

const asked: readonly [path: string, ...bodies: Record<string, unknown>[]][] = [
  [
    "/v1/rerank",
    ...[
      { query: "a", documents },
      { query: "a", documents, top_n: 1, return_documents: true },
    ],
    ...[{ query: "a" }, { query: "a", documents: [] }, { query: 7, documents }, { query: "a", documents, top_n: -1 }],
    { query: "a", documents, user: "user-1" },
  ],
  ["/v1/score", { text_1: "a", text_2: ["b"] }, { queries: "a", documents: ["b"] }, { text_1: 7 }, {}],
  [
    "/v1/moderations",
    { input: "a" },
    { input: ["a", "b"] },
    { input: [{ type: "text", text: "a" }] },
    { input: 7 },
    {},
  ],
  ["/v1/decisions", { input: "a", questions: [{ type: "predicate", name: "billing", question: "Is it?" }] }, {}],
  ["/v1/tokenize", { prompt: "The headrace" }, { messages: [{ role: "user", content: "Hi" }] }, { prompt: 7 }, {}],
  ["/v1/detokenize", { tokens: [791, 2010] }, { tokens: ["a"] }, {}],
  ["/v1/audio/speech", { input: "a", voice: "b" }, { input: 7, voice: "b" }, {}],
  ["/v1/images/generations", { prompt: "A mill", n: 2 }, { prompt: 7 }, {}],
];

const read = [
  ...["/v1/models", "/v1/models/aliased", "/v1/models/none", "/v1/models/testing", "/v1/files", "/v1/files/file-none"],
  ...["/v1/files?limit=0", "/v1/batches", "/v1/batches/batch_none", "/v1/batches?limit=a", "/v1/messages/batches"],
  ...["/v1/uploads/upload_none", "/v1/conversations/conv_none", "/v1/responses/resp_none", "/v1/chat/completions"],
  ...[
    "/v1/chat/completions?limit=1000",
    "/v1/limits",
    "/v1/nothing",
    "/healthz",
    "/v1/keys?limit=0",
    "/v1/keys/key_none",
  ],
] as const;

const accept = { accept: "application/json, text/event-stream" };
const mcp = (method: string, params: Record<string, unknown> = {}) => ({ jsonrpc: "2.0", id: 1, method, params });
const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "recorder", version: "1" } };

/** Methods of an MCP session at a gateway without MCP servers. */
const inSession = [
  { jsonrpc: "2.0", method: "notifications/initialized" },
  ...["ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list", "tools/none"].map((method) =>
    mcp(method),
  ),
  mcp("tools/call", { name: "none", arguments: {} }),
  mcp("tools/call", { name: 7 }),
  [mcp("ping"), mcp("ping")],
].map((body) => ([begun]: readonly Json[]) => ({
  ...{ path: "/mcp", body },
  headers: { ...accept, "mcp-session-id": String(begun?.["session"]) },
}));

const boundary = "recorded";
const uploaded = ["purpose", 'file"; filename="a.jsonl'].map(
  (name, index) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${index === 0 ? "batch" : '{"a":1}\n'}\r\n`,
);
const upload = {
  ...{ path: "/v1/files", body: `${uploaded.join("")}--${boundary}--\r\n` },
  headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
};
const ofFile =
  (method: string, rest = "") =>
  ([file]: readonly Json[]) => ({ method, path: `/v1/files/${String(file?.["id"])}${rest}` });

export function otherRequests(models: Models): RecordedRequest[] {
  const model = models.on("chat", "plain");
  const counted = models.on("chat", "counted");
  const ofTools = (body: unknown, headers: Record<string, string> = accept) => ({ path: "/mcp", body, headers });
  return [
    ...asked.flatMap(([path, ...bodies]) =>
      bodies.map((body) =>
        recorded(`${path} ${JSON.stringify(body).slice(0, 50)}`, {
          path,
          body: { model: path === "/v1/tokenize" ? counted : model, ...body },
        }),
      ),
    ),
    ...["/v1/rerank", "/v1/score", "/v1/moderations"].flatMap((path) => [
      recorded(`${path} of no model`, { path, body: {} }),
      recorded(`${path} of an unknown model`, { path, body: { model: "none", query: "a", documents, input: "a" } }),
      recorded(`${path} that fails`, {
        ...{
          path,
          body: {
            model: models.failing("chat", "status-500"),
            query: "a",
            documents,
            text_1: "a",
            text_2: "b",
            input: "a",
          },
        },
      }),
    ]),
    recorded("file", upload, ofFile("GET"), ofFile("GET", "/content"), ofFile("DELETE"), ofFile("GET")),
    recorded("file of no purpose", { ...upload, body: upload.body.replace("batch", "none") }),
    ...read.map((path) => recorded(`GET ${path}`, { path })),
    recorded("batch without a file", {
      path: "/v1/batches",
      body: { input_file_id: "file-none", endpoint: "/v1/embeddings", completion_window: "24h" },
    }),
    recorded("batch of nothing", { path: "/v1/batches", body: {} }),
    recorded("messages batch of nothing", { path: "/v1/messages/batches", body: { requests: [] } }),
    recorded("mcp initialize", ofTools(mcp("initialize", client))),
    recorded("mcp without a session", ofTools(mcp("tools/list"))),
    recorded("mcp unknown method", ofTools(mcp("tools/none"))),
    recorded("mcp that takes no streams", ofTools(mcp("initialize", client), { accept: "application/json" })),
    recorded("mcp broken", ofTools("{")),
    recorded("mcp session", ofTools(mcp("initialize", client)), ...inSession),
    recorded("mcp without a key", { ...ofTools(mcp("initialize", client)), key: null }),
  ];
}
