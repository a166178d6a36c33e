// Writes replies in the format of each endpoint, whole and as a stream, as its maker documents them.
import type { Reply, ReplyUsage } from "./replies.ts";

export type Json = Record<string, unknown>;

export interface Written {
  whole(reply: Reply, asked: Json): Json;
  /** The text of the stream. */
  stream(reply: Reply, asked: Json): string;
}

const made = { created: 1_700_000_001, model: "model-of-the-server" };
const event = (data: unknown) => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const named = (data: Json) => `event: ${String(data["type"])}\n${event(data)}`;
const textOf = ({ pieces }: Reply) => pieces.join("");
const indices = (asked: Json) => Array.from({ length: typeof asked["n"] === "number" ? asked["n"] : 1 }, (_, i) => i);

function chatUsage({ prompt, completion, cached, cacheWrite, reasoning }: ReplyUsage): Json {
  return {
    ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    ...(cached ? { prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite } } : {}),
    ...(reasoning ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
  };
}

function chatEnd({ end, calls }: Reply): string {
  return { stop: calls ? "tool_calls" : "stop", length: "length", filter: "content_filter" }[end];
}

function logprobsOf(reply: Reply, asked: Json): Json {
  if (!asked["logprobs"]) return {};
  return {
    logprobs: { content: reply.pieces.map((token) => ({ token, logprob: -0.5, bytes: null, top_logprobs: [] })) },
  };
}

const chatCall = ({ id, name, input }: NonNullable<Reply["calls"]>[number], from = 0, to = input.length) => ({
  ...{ id, type: "function", function: { name, arguments: input.slice(from, to) } },
});

export const chat: Written = {
  whole(reply, asked) {
    const message = {
      ...{ role: "assistant", content: reply.pieces.length > 0 ? textOf(reply) : null },
      ...(reply.reasoning ? { reasoning_content: reply.reasoning } : {}),
      ...{ refusal: reply.refusal ?? null },
      ...(reply.calls ? { tool_calls: reply.calls.map((call) => chatCall(call)) } : {}),
    };
    const choice = { message, ...logprobsOf(reply, asked), finish_reason: chatEnd(reply) };
    return {
      ...{ id: "chatcmpl-up", object: "chat.completion", ...made },
      choices: indices(asked).map((index) => ({ index, ...choice })),
      ...(reply.usage ? { usage: chatUsage(reply.usage) } : {}),
    };
  },
  stream(reply, asked) {
    const head = { id: "chatcmpl-up", object: "chat.completion.chunk", ...made };
    const deltas: Json[] = [
      { role: "assistant", content: "" },
      ...(reply.reasoning?.match(/.{1,9}/g) ?? []).map((reasoning_content) => ({ reasoning_content })),
      ...reply.pieces.map((content) => ({ content })),
      ...(reply.refusal ? [{ refusal: reply.refusal }] : []),
      ...(reply.calls ?? []).flatMap((call, index) => [
        { tool_calls: [{ index, ...chatCall(call, 0, 5) }] },
        { tool_calls: [{ index, function: { arguments: call.input.slice(5) } }] },
      ]),
    ];
    const chunk = (index: number, delta: Json, finish_reason: string | null) =>
      event({ ...head, choices: [{ index, delta, finish_reason }] });
    const wantsUsage = (asked["stream_options"] as { include_usage?: boolean } | null | undefined)?.include_usage;
    return [
      ...deltas.flatMap((delta) => indices(asked).map((index) => chunk(index, delta, null))),
      ...indices(asked).map((index) => chunk(index, {}, chatEnd(reply))),
      wantsUsage && reply.usage ? event({ ...head, choices: [], usage: chatUsage(reply.usage) }) : "",
      event("[DONE]"),
    ].join("");
  },
};

export const completion: Written = {
  whole(reply, asked) {
    const { prompt } = asked;
    const prompts = Array.isArray(prompt) && typeof prompt[0] !== "number" ? prompt.length : 1;
    const count = prompts * indices(asked).length;
    const finish_reason = reply.end === "length" ? "length" : "stop";
    return {
      ...{ id: "cmpl-up", object: "text_completion", ...made },
      choices: Array.from({ length: count }, (_, index) => ({
        ...{ index, text: textOf(reply), logprobs: null, finish_reason },
      })),
      ...(reply.usage ? { usage: chatUsage(reply.usage) } : {}),
    };
  },
  stream(reply, asked) {
    const head = { id: "cmpl-up", object: "text_completion", ...made };
    const chunk = (text: string, finish_reason: string | null) =>
      event({ ...head, choices: [{ index: 0, text, logprobs: null, finish_reason }] });
    const wantsUsage = (asked["stream_options"] as { include_usage?: boolean } | null | undefined)?.include_usage;
    return [
      ...reply.pieces.map((piece) => chunk(piece, null)),
      chunk("", reply.end === "length" ? "length" : "stop"),
      wantsUsage && reply.usage ? event({ ...head, choices: [], usage: chatUsage(reply.usage) }) : "",
      event("[DONE]"),
    ].join("");
  },
};

function itemsOf(reply: Reply): Json[] {
  const message = { id: "msg_up", type: "message", role: "assistant", status: "completed" };
  const text = { type: "output_text", text: textOf(reply), annotations: [], logprobs: [] };
  const summary = [{ type: "summary_text", text: reply.reasoning }];
  return [
    ...(reply.reasoning ? [{ id: "rs_up", type: "reasoning", summary, encrypted_content: "c2VhbGVk" }] : []),
    ...(reply.pieces.length > 0 ? [{ ...message, content: [text] }] : []),
    ...(reply.refusal ? [{ ...message, content: [{ type: "refusal", refusal: reply.refusal }] }] : []),
    ...(reply.calls ?? []).map(({ id, name, input }, index) => ({
      ...{ id: `fc_up_${index}`, type: "function_call", status: "completed", call_id: id, name, arguments: input },
    })),
  ];
}

function responseObject(reply: Reply, asked: Json, isOver: boolean): Json {
  const { usage, end } = reply;
  const reason = { stop: undefined, length: "max_output_tokens", filter: "content_filter" }[end];
  const members = ["instructions", "tools", "tool_choice", "text", "reasoning", "temperature", "top_p"] as const;
  return {
    ...{ id: "resp_up", object: "response", created_at: made.created, model: made.model },
    status: isOver ? (reason ? "incomplete" : "completed") : "in_progress",
    ...{ output: isOver ? itemsOf(reply) : [], error: null },
    incomplete_details: isOver && reason ? { reason } : null,
    ...Object.fromEntries(members.map((name) => [name, asked[name] ?? null])),
    ...{ store: asked["store"] ?? true, previous_response_id: null, parallel_tool_calls: true, metadata: {} },
    usage:
      isOver && usage
        ? {
            ...{ input_tokens: usage.prompt, output_tokens: usage.completion },
            total_tokens: usage.prompt + usage.completion,
            input_tokens_details: { cached_tokens: usage.cached ?? 0 },
            output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
          }
        : null,
  };
}

/** The events between an item's beginning and its end. */
function eventsOfItem(item: Json, reply: Reply, output_index: number): Json[] {
  const at = { item_id: item["id"], output_index };
  if (item["type"] === "function_call") {
    const text = String(item["arguments"]);
    return [
      ...[text.slice(0, 5), text.slice(5)].map((delta) => ({
        ...{ type: "response.function_call_arguments.delta", ...at, delta },
      })),
      { type: "response.function_call_arguments.done", ...at, arguments: text },
    ];
  }
  if (item["type"] === "reasoning") {
    const place = { ...at, summary_index: 0 };
    const part = { type: "summary_text", text: reply.reasoning };
    return [
      { type: "response.reasoning_summary_part.added", ...place, part: { ...part, text: "" } },
      { type: "response.reasoning_summary_text.delta", ...place, delta: reply.reasoning },
      { type: "response.reasoning_summary_text.done", ...place, text: reply.reasoning },
      { type: "response.reasoning_summary_part.done", ...place, part },
    ];
  }
  const place = { ...at, content_index: 0 };
  const [part] = item["content"] as [Json];
  const isText = part["type"] === "output_text";
  const kind = isText ? "response.output_text" : "response.refusal";
  const pieces = isText ? reply.pieces : [String(part["refusal"])];
  return [
    { type: "response.content_part.added", ...place, part: isText ? { ...part, text: "" } : { ...part, refusal: "" } },
    ...pieces.map((delta) => ({ type: `${kind}.delta`, ...place, delta, ...(isText ? { logprobs: [] } : {}) })),
    { type: `${kind}.done`, ...place, ...(isText ? { text: part["text"] } : { refusal: part["refusal"] }) },
    { type: "response.content_part.done", ...place, part },
  ];
}

export const response: Written = {
  whole: (reply, asked) => responseObject(reply, asked, true),
  stream(reply, asked) {
    const begun = responseObject(reply, asked, false);
    const items = itemsOf(reply).flatMap((item, output_index) => {
      const empty = { content: [], summary: [], arguments: "" };
      const emptied = Object.fromEntries(Object.entries(empty).filter(([name]) => name in item));
      return [
        { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", ...emptied } },
        ...eventsOfItem(item, reply, output_index),
        { type: "response.output_item.done", output_index, item },
      ];
    });
    const last = reply.end === "stop" ? "response.completed" : "response.incomplete";
    return [
      ...["response.created", "response.in_progress"].map((type) => ({ type, response: begun })),
      ...items,
      { type: last, response: responseObject(reply, asked, true) },
    ]
      .map((data, sequence_number) => named({ ...data, sequence_number }))
      .join("");
  },
};

function messageUsage({ prompt, completion, cached, cacheWrite }: ReplyUsage): Json {
  return {
    input_tokens: prompt - (cached ?? 0) - (cacheWrite ?? 0),
    ...{ cache_creation_input_tokens: cacheWrite ?? 0, cache_read_input_tokens: cached ?? 0 },
    output_tokens: completion,
  };
}

function blocksOf(reply: Reply): Json[] {
  const said = reply.refusal ?? textOf(reply);
  return [
    ...(reply.reasoning ? [{ type: "thinking", thinking: reply.reasoning, signature: "c2lnbmVk" }] : []),
    ...(said === "" ? [] : [{ type: "text", text: said }]),
    ...(reply.calls ?? []).map(({ id, name, input }) => ({
      ...{ type: "tool_use", id: `toolu_${id}`, name, input: JSON.parse(input) as Json },
    })),
  ];
}

function messageEnd({ end, calls, stoppedBy, refusal }: Reply): Json {
  const reason = { stop: calls ? "tool_use" : "end_turn", length: "max_tokens", filter: "refusal" }[end];
  const stop_reason = refusal ? "refusal" : stoppedBy ? "stop_sequence" : reason;
  return { stop_reason, stop_sequence: stoppedBy ?? null };
}

const silent: ReplyUsage = { prompt: 0, completion: 0 };

export const message: Written = {
  whole: (reply) => ({
    ...{ id: "msg_up", type: "message", role: "assistant", model: made.model, content: blocksOf(reply) },
    ...messageEnd(reply),
    usage: messageUsage(reply.usage ?? silent),
  }),
  stream(reply, asked) {
    const usage = reply.usage ?? silent;
    const blocks = blocksOf(reply).flatMap((block, index) => {
      const deltas: Json[] =
        block["type"] === "thinking"
          ? [
              { type: "thinking_delta", thinking: block["thinking"] },
              { type: "signature_delta", signature: block["signature"] },
            ]
          : block["type"] === "text"
            ? (reply.refusal ? [reply.refusal] : reply.pieces).map((text) => ({ type: "text_delta", text }))
            : (JSON.stringify(block["input"]).match(/.{1,9}/g) ?? []).map((partial_json) => ({
                ...{ type: "input_json_delta", partial_json },
              }));
      const empty = { thinking: "", signature: "", text: "", input: {} };
      const emptied = Object.fromEntries(Object.entries(empty).filter(([name]) => name in block));
      return [
        { type: "content_block_start", index, content_block: { ...block, ...emptied } },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ];
    });
    const begun = { ...this.whole(reply, asked), content: [], stop_reason: null, stop_sequence: null };
    return [
      { type: "message_start", message: { ...begun, usage: { ...messageUsage(usage), output_tokens: 1 } } },
      { type: "ping" },
      ...blocks,
      { type: "message_delta", delta: messageEnd(reply), usage: { output_tokens: usage.completion } },
      { type: "message_stop" },
    ]
      .map(named)
      .join("");
  },
};
