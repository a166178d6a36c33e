// A model server that speaks Responses itself, and says how much of the conversation it was given.
import { json, type Script, type UpstreamRequest, usage } from "./scripted-upstream.ts";

/** What was said in a request of either format, the last thing last. */
export function saidIn({ body }: Pick<UpstreamRequest, "body">): string[] {
  const items = (body["messages"] ?? body["input"]) as { role?: string; content?: unknown }[];
  return items.map((item) => `${item.role ?? "item"}: ${textOf(item)}`);
}

function textOf({ content, ...item }: { content?: unknown }): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return JSON.stringify(item);
  return (content as { text?: string }[]).map(({ text = "" }) => text).join("");
}

/** Every response and message has the same id, as those of some servers do once they were started again. */
export function responseScript(text = "Hello world"): Script {
  return (request, res) => {
    const response = responseOf(request, text, "completed");
    if (request.body["stream"] !== true) {
      json(res, 200, response);
      return;
    }
    const begun = responseOf(request, text, "in_progress");
    const [item] = response.output;
    const part = item?.content[0];
    const at = { item_id: "msg_up", output_index: 0, content_index: 0 };
    const events: readonly (readonly [string, object])[] = [
      ["response.created", { response: begun }],
      ["response.in_progress", { response: begun }],
      ["response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } }],
      ["response.content_part.added", { ...at, part: { ...part, text: "" } }],
      ["response.output_text.delta", { ...at, delta: text, logprobs: [] }],
      ["response.output_text.done", { ...at, text, logprobs: [] }],
      ["response.content_part.done", { ...at, part }],
      ["response.output_item.done", { output_index: 0, item }],
      ["response.completed", { response }],
    ];
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const [number, [type, members]] of events.entries()) {
      res.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...members })}\n\n`);
    }
    res.end();
  };
}

function responseOf({ body }: UpstreamRequest, text: string, status: "completed" | "in_progress") {
  const part = { type: "output_text", text, annotations: [], logprobs: [] };
  const message = { id: "msg_up", type: "message", role: "assistant", status: "completed", content: [part] };
  const { prompt_tokens: input_tokens, completion_tokens: output_tokens, total_tokens } = usage;
  return {
    ...{ id: "resp_up", object: "response", created_at: 1_700_000_001, status, model: "upstream-model" },
    ...{ output: status === "completed" ? [message] : [], error: null, incomplete_details: null },
    ...{ previous_response_id: null, store: body["store"] ?? true, instructions: body["instructions"] ?? null },
    ...{ tools: [], tool_choice: "auto", parallel_tool_calls: true, metadata: {}, temperature: 1, top_p: 1 },
    usage:
      status === "completed"
        ? {
            ...{ input_tokens, output_tokens, total_tokens },
            input_tokens_details: { cached_tokens: 0 },
            output_tokens_details: { reasoning_tokens: 0 },
          }
        : null,
  };
}
