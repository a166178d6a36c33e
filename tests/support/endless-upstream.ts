// A model server that never comes to an end by itself: it says a word a moment, in whichever format it is asked, until it is stopped.
import type { ServerResponse } from "node:http";
import { chunk, json, type ScriptedUpstream, startUpstream, type UpstreamRequest } from "./scripted-upstream.ts";

export const word = "word ";
/** Words at a time, and milliseconds between: several events come with each read. */
const [wordsAtOnce, everyMs] = [4, 2];

export function startEndlessUpstream(): Promise<ScriptedUpstream> {
  return startUpstream((request, res) => {
    if (request.body["stream"] !== true) return whole(request, res);
    res.writeHead(200, { "content-type": "text/event-stream" });
    const say = sayingOf(request.path, res);
    const timer = setInterval(() => {
      res.write(Array.from({ length: wordsAtOnce }, say).join(""));
    }, everyMs);
    res.on("close", () => clearInterval(timer));
    return undefined;
  });
}

/** Answers with as many tokens as it may have; without a limit, 10,000. */
function whole({ body }: UpstreamRequest, res: ServerResponse): void {
  const most = Number(body["max_completion_tokens"] ?? body["max_tokens"] ?? 10_000);
  json(res, 200, {
    ...{ id: "chatcmpl-up", object: "chat.completion", created: 1_700_000_001, model: "upstream-model" },
    choices: [{ index: 0, message: { role: "assistant", content: word.repeat(most) }, finish_reason: "length" }],
    usage: { prompt_tokens: 10, completion_tokens: most, total_tokens: 10 + most },
  });
}

/** Begins an answer, and gives what says the next word of it. */
function sayingOf(path: string, res: ServerResponse): () => string {
  if (path === "/v1/messages") return messageSaying(res);
  if (path === "/v1/responses") return responseSaying(res);
  if (path === "/v1/chat/completions") {
    res.write(chunk({ role: "assistant", content: "" }));
    return () => chunk({ content: word });
  }
  const head = { id: "cmpl-up", object: "text_completion", created: 1_700_000_001, model: "upstream-model" };
  return () => `data: ${JSON.stringify({ ...head, choices: [{ index: 0, text: word, finish_reason: null }] })}\n\n`;
}

function messageSaying(res: ServerResponse): () => string {
  const tell = (event: { type: string; [member: string]: unknown }) =>
    `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  const usage = { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const message = {
    ...{ id: "msg_up", type: "message", role: "assistant", model: "upstream-model", content: [] },
    ...{ stop_reason: null, stop_sequence: null, usage },
  };
  res.write(tell({ type: "message_start", message }));
  res.write(tell({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }));
  return () => tell({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: word } });
}

function responseSaying(res: ServerResponse): () => string {
  let number = 0;
  const tell = (type: string, members: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...members })}\n\n`;
  const response = {
    ...{ id: "resp_up", object: "response", created_at: 1_700_000_001, status: "in_progress", model: "upstream-model" },
    ...{ output: [], error: null, incomplete_details: null, usage: null, tools: [], metadata: {} },
  };
  const at = { item_id: "msg_up", output_index: 0, content_index: 0 };
  const item = { id: "msg_up", type: "message", role: "assistant", status: "in_progress", content: [] };
  res.write(tell("response.created", { response }));
  res.write(tell("response.output_item.added", { output_index: 0, item }));
  const part = { type: "output_text", text: "", annotations: [], logprobs: [] };
  res.write(tell("response.content_part.added", { ...at, part }));
  return () => tell("response.output_text.delta", { ...at, delta: word, logprobs: [] });
}
