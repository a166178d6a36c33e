import { describe, expect, test } from "bun:test";
import type { Operation } from "../domain/models/operation.ts";
import { dialects } from "./dialects/dialects.ts";
import { readsBeyond } from "./reads-beyond.ts";

const messages = [{ role: "user", content: [{ type: "text", text: "Hi" }] }];
const reads = (operation: Operation, body: object) => readsBeyond(dialects[operation], { model: "m", ...body });

describe("requests whose model server reads more than the body", () => {
  test.each<[Operation, object]>([
    ["response", { input: "Hi", tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }],
    ["response", { input: "Hi", tools: [{ type: "shell", environment: { type: "container_auto" } }] }],
    ["response", { input: "Hi", tools: [{ type: "namespace", name: "n", tools: [{ type: "mcp" }] }] }],
    ["response", { input: [{ role: "user", content: [{ type: "input_video", video_url: "https://x/v" }] }] }],
    ["message", { messages, mcp_servers: [{ type: "url", url: "https://x", name: "x" }] }],
    ["message", { messages, container: "container_1" }],
    ["message", { messages: [{ role: "user", content: [{ type: "container_upload", file_id: "f" }] }] }],
    ["chat", { messages, enable_search: true }],
    ["chat", { messages, knowledge: ["base"] }],
    ["rerank", { query: "q", documents: [{ image: "https://x/p.png" }] }],
  ])("finds sources beyond the body in %s with %j", (operation, body) => {
    expect(reads(operation, body)).toBe(true);
  });

  test.each<[Operation, object]>([
    ["chat", { messages, tools: [{ type: "function", function: { name: "f" } }], user: "u", seed: 1 }],
    ["chat", { messages, enable_search: false, web_search_options: null, custom: 7 }],
    ["completion", { prompt: "Hi", max_tokens: 5 }],
    ["completion", { prompt: [[1, 2]], suffix: "x" }],
    [
      "message",
      {
        messages,
        tools: [
          { name: "f", input_schema: {} },
          { type: "memory_20250818", name: "memory" },
        ],
      },
    ],
    ["response", { input: "Hi", tools: [{ type: "function", name: "f" }], previous_response_id: null }],
    [
      "response",
      { input: [{ type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "" }] }] },
    ],
    ["embedding", { input: ["a", "b"], input_type: "query" }],
    ["rerank", { query: "q", documents: ["a", { text: "b" }] }],
  ])("finds no sources beyond the body in %s with %j", (operation, body) => {
    expect(reads(operation, body)).toBe(false);
  });
});
