// The JSON of chat completions in OpenAI's API, as chunks of a stream and as a whole object.

import type { ReplyEvent } from "../reply/reply-reader.ts";
import type { AnswerFormat, FinishedChoice, Usage } from "./answer.ts";

/**
 * Returns the format of chat completions. For speed, a chunk is concatenated from strings, with one
 * `JSON.stringify` of the token's text.
 */
export function chatFormat(modelId: string, includeUsage: boolean): AnswerFormat {
  const id = `chatcmpl-${crypto.randomUUID().replaceAll("-", "")}`;
  const created = Math.floor(Date.now() / 1000);
  const head = (object: string) =>
    `{"id":"${id}","object":"${object}","created":${created},"model":${JSON.stringify(modelId)},"choices":[`;
  const chunkHead = head("chat.completion.chunk");
  const tail = includeUsage ? '],"usage":null}' : "]}";
  const chunk = (choice: number, delta: string, finishReason = "null") =>
    `${chunkHead}{"index":${choice},"delta":${delta},"logprobs":null,"finish_reason":${finishReason}}${tail}`;
  return {
    chunks: {
      first: (choice) => chunk(choice, '{"role":"assistant","content":""}'),
      event: (choice, event) => chunk(choice, delta(event)),
      last: (choice, { finishReason }) => chunk(choice, "{}", `"${finishReason}"`),
      usage: (usage) => `${chunkHead}],"usage":${JSON.stringify(usage)}}`,
    },
    whole: (choices, usage: Usage) =>
      `${head("chat.completion")}${choices.map(wholeChoice).join(",")}],"usage":${JSON.stringify(usage)}}`,
  };
}

function delta(event: ReplyEvent): string {
  switch (event.kind) {
    case "text":
      return `{"content":${JSON.stringify(event.text)}}`;
    case "reasoning":
      return `{"reasoning_content":${JSON.stringify(event.text)}}`;
    case "call": {
      const { index, id, name } = event;
      return JSON.stringify({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] });
    }
    case "arguments":
      return JSON.stringify({ tool_calls: [{ index: event.index, function: { arguments: event.text } }] });
  }
}

function wholeChoice({ events, outcome }: FinishedChoice, index: number): string {
  let content = "";
  let reasoning = "";
  const calls: { id: string; type: "function"; function: { name: string; arguments: string } }[] = [];
  for (const event of events) {
    if (event.kind === "text") content += event.text;
    else if (event.kind === "reasoning") reasoning += event.text;
    else if (event.kind === "call") {
      calls.push({ id: event.id, type: "function", function: { name: event.name, arguments: "" } });
    } else {
      const call = calls[event.index];
      if (call !== undefined) call.function.arguments += event.text;
    }
  }
  const message = {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return JSON.stringify({ index, message, logprobs: null, finish_reason: outcome.finishReason });
}
