// A server of models that speaks chat completions and calls tools, turn by turn as a test says.

export interface LoopTurn {
  model: string;
  messages: { role: string; content: unknown }[];
  tools?: { function: { name: string } }[];
  stream?: boolean;
  response_format?: unknown;
  parallel_tool_calls?: boolean;
}

export interface LoopingModel {
  /** Base URL, ends in `/v1`. */
  url: string;
  /** What it was asked. */
  turns: LoopTurn[];
  [Symbol.asyncDispose](): Promise<void>;
}

export const loopUsage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** What it says where it calls one function several times. */
export function callsOf(name: string, ...all: readonly Record<string, unknown>[]) {
  return {
    tool_calls: all.map((args, index) => ({
      ...{ index, id: `call_${Bun.randomUUIDv7()}`, type: "function" },
      function: { name, arguments: JSON.stringify(args) },
    })),
  };
}

/** `said`: members of its message. */
export function chatAnswer(said: object, { stream, model }: Pick<LoopTurn, "stream" | "model">): Response {
  const finish_reason = "tool_calls" in said ? "tool_calls" : "stop";
  const base = { id: "c", created: 1, model };
  if (!stream) {
    const choices = [{ index: 0, message: { role: "assistant", content: null, ...said }, finish_reason }];
    return Response.json({ ...base, object: "chat.completion", choices, usage: loopUsage });
  }
  const chunk = (choices: unknown[], more = {}) =>
    `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices, ...more })}\n\n`;
  return new Response(
    chunk([{ index: 0, delta: { role: "assistant", ...said }, finish_reason: null }]) +
      chunk([{ index: 0, delta: {}, finish_reason }], { usage: loopUsage }) +
      "data: [DONE]\n\n",
    { headers: { "content-type": "text/event-stream" } },
  );
}

/** `answer`: members of the message, or a whole answer; it is told the turn and how many there were, this one included. */
export function startLoopingModel(
  answer: (turn: LoopTurn, count: number) => object | Response | Promise<object | Response>,
): LoopingModel {
  const turns: LoopTurn[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      if (!request.url.endsWith("/chat/completions")) return new Response("no", { status: 404 });
      const turn = (await request.json()) as LoopTurn;
      turns.push(turn);
      const said = await answer(turn, turns.length);
      return said instanceof Response ? said : chatAnswer(said, turn);
    },
  });
  return {
    ...{ url: `http://127.0.0.1:${server.port}/v1`, turns },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
