// Says what a scripted model answers in each of the three formats, whole and as the events of a stream, piece by piece.
import type { Api, Asked } from "./asked.ts";
import type { Turn } from "./scripted-model.ts";

/** What the model counted of one answer. */
export interface Count {
  prompt: number;
  /** This much of the prompt was read from a cache. */
  cached: number;
  completion: number;
}

export interface Speech {
  whole: object;
  /** Each ends in an empty line. */
  events: readonly string[];
}

interface Saying {
  model: string;
  asked: Asked;
  turn: Turn;
  count: Count;
  /** With chat completions only who asks gets the usage of a stream. */
  includeUsage: boolean;
}

export function speechOf(api: Api, saying: Saying): Speech {
  return { chat: inChat, responses: inResponses, messages: inMessages }[api](saying);
}

/** Texts come word by word, arguments in halves. Each is a token to this model. */
export function piecesOf({ call, text }: Turn): string[] {
  if (!call) return text.match(/\S+\s*/g) ?? [];
  const json = JSON.stringify(call.arguments);
  const half = Math.ceil(json.length / 2);
  return [json.slice(0, half), json.slice(half)];
}

const createdAt = 1_790_000_000;

function inChat({ model, turn, count, includeUsage }: Saying): Speech {
  const head = { id: `chatcmpl-${turn.done}`, created: createdAt, model };
  const usage = {
    prompt_tokens: count.prompt,
    completion_tokens: count.completion,
    total_tokens: count.prompt + count.completion,
    prompt_tokens_details: { cached_tokens: count.cached },
  };
  const { call } = turn;
  const finish = call ? "tool_calls" : "stop";
  const called = call && { id: call.id, type: "function", function: { name: call.tool } };
  const chunk = (more: object) =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], ...more })}\n\n`;
  const choice = (delta: object, reason: string | null = null) =>
    chunk({ choices: [{ index: 0, delta, finish_reason: reason }] });
  const first = called && { ...called, index: 0, function: { ...called.function, arguments: "" } };
  const calls = call && [{ ...called, function: { name: call.tool, arguments: JSON.stringify(call.arguments) } }];
  const message = { role: "assistant", content: call ? null : turn.text, ...(calls ? { tool_calls: calls } : {}) };
  return {
    whole: {
      ...{ ...head, object: "chat.completion", usage },
      choices: [{ index: 0, message, finish_reason: finish }],
    },
    events: [
      choice({ role: "assistant", content: call ? null : "", ...(first ? { tool_calls: [first] } : {}) }),
      ...piecesOf(turn).map((piece) =>
        choice(call ? { tool_calls: [{ index: 0, function: { arguments: piece } }] } : { content: piece }),
      ),
      choice({}, finish),
      ...(includeUsage ? [chunk({ usage })] : []),
      "data: [DONE]\n\n",
    ],
  };
}

function inResponses({ model, asked, turn, count }: Saying): Speech {
  const usage = {
    input_tokens: count.prompt,
    input_tokens_details: { cached_tokens: count.cached },
    output_tokens: count.completion,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: count.prompt + count.completion,
  };
  const item = responseItem(asked, turn);
  const response = (status: string, more: object) => ({
    ...{ id: `resp_${turn.done}${turn.kind}`, object: "response", created_at: createdAt, model, status },
    ...{ error: null, incomplete_details: null, instructions: null, metadata: {}, output: [], usage: null },
    ...{ parallel_tool_calls: true, temperature: 1, top_p: 1, tool_choice: "auto", tools: [], store: false },
    ...{ previous_response_id: null, reasoning: { effort: null, summary: null }, text: { format: { type: "text" } } },
    ...{ truncation: "disabled", background: false, max_output_tokens: null, ...more },
  });
  let number = 0;
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...more })}\n\n`;
  const place = { item_id: item.whole["id"], output_index: 0 };
  const whole = response("completed", { output: [item.whole], usage });
  return {
    whole,
    events: [
      event("response.created", { response: response("in_progress", {}) }),
      event("response.in_progress", { response: response("in_progress", {}) }),
      event("response.output_item.added", { output_index: 0, item: item.begun }),
      ...item.events.map(([type, more]) => event(type, { ...place, ...more })),
      event("response.output_item.done", { output_index: 0, item: item.whole }),
      event("response.completed", { response: whole }),
    ],
  };
}

interface ResponseItem {
  begun: object;
  events: readonly [type: string, more: object][];
  whole: Record<string, unknown>;
}

function responseItem({ tools, isToCompact }: Asked, turn: Turn): ResponseItem {
  const { call } = turn;
  if (isToCompact) {
    const whole = { id: `cmp_${turn.done}`, type: "compaction", encrypted_content: turn.text };
    return { begun: whole, events: [], whole };
  }
  if (!call) return messageItem(turn);
  const isCustom = tools.get(call.tool) === "custom";
  const [kind, member, reported] = isCustom
    ? (["custom_tool_call", "input", "custom_tool_call_input"] as const)
    : (["function_call", "arguments", "function_call_arguments"] as const);
  const value = isCustom ? String(call.arguments["input"]) : JSON.stringify(call.arguments);
  const within = call.namespace === undefined ? {} : { namespace: call.namespace };
  const head = { id: `fc_${call.id}`, type: kind, call_id: call.id, name: call.tool, ...within };
  const pieces = isCustom ? [value] : piecesOf(turn);
  return {
    begun: { ...head, [member]: "", status: "in_progress" },
    events: [
      ...pieces.map((delta): [string, object] => [`response.${reported}.delta`, { delta }]),
      [`response.${reported}.done`, { [member]: value }],
    ],
    whole: { ...head, [member]: value, status: "completed" },
  };
}

function messageItem(turn: Turn): ResponseItem {
  const head = { id: `msg_${turn.done}${turn.kind}`, type: "message", role: "assistant" };
  const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
  const { text } = turn;
  const place = { content_index: 0 };
  return {
    begun: { ...head, status: "in_progress", content: [] },
    events: [
      ["response.content_part.added", { ...place, part: part("") }],
      ...piecesOf(turn).map((delta): [string, object] => [
        "response.output_text.delta",
        { ...place, delta, logprobs: [] },
      ]),
      ["response.output_text.done", { ...place, text, logprobs: [] }],
      ["response.content_part.done", { ...place, part: part(text) }],
    ],
    whole: { ...head, status: "completed", content: [part(text)] },
  };
}

function inMessages({ model, turn, count }: Saying): Speech {
  const { call, text } = turn;
  const usage = (output: number) => ({
    ...{ input_tokens: count.prompt - count.cached, cache_read_input_tokens: count.cached },
    ...{ cache_creation_input_tokens: 0, output_tokens: output },
  });
  const block = call
    ? { type: "tool_use", id: call.id, name: call.tool, input: call.arguments }
    : { type: "text", text };
  const stop = { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null };
  const head = { id: `msg_${turn.done}${turn.kind}`, type: "message", role: "assistant", model };
  const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const delta = (piece: string) =>
    call ? { type: "input_json_delta", partial_json: piece } : { type: "text_delta", text: piece };
  return {
    whole: { ...head, content: [block], ...stop, usage: usage(count.completion) },
    events: [
      event("message_start", {
        message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage: usage(1) },
      }),
      event("ping", {}),
      event("content_block_start", {
        index: 0,
        content_block: call ? { ...block, input: {} } : { type: "text", text: "" },
      }),
      ...piecesOf(turn).map((piece) => event("content_block_delta", { index: 0, delta: delta(piece) })),
      event("content_block_stop", { index: 0 }),
      event("message_delta", { delta: stop, usage: usage(count.completion) }),
      event("message_stop", {}),
    ],
  };
}
