// Whatever format its engine speaks, a response and each event of its stream are as Open Responses has them, and the SDKs' own readers of streams take them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { compactionFaults, eventFaults, responseFaults, socketErrorFaults } from "../support/agents/open-responses.ts";
import { type ReplyStep, replyScript, reportedUsage, say } from "../support/agents/reply-script.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

/** One server for each format, which speaks that alone; its model has the name of the format. */
const apis = ["chat", "responses", "messages"] as const;
type Api = (typeof apis)[number];

let upstreams: Record<Api, ScriptedUpstream>;
let server: TestServer;

beforeAll(async () => {
  upstreams = Object.fromEntries(
    await Promise.all(apis.map(async (api) => [api, await startUpstream()] as const)),
  ) as Record<Api, ScriptedUpstream>;
  const lines = apis.map((api) => {
    upstreams[api].serves([{ id: `${api}-model`, object: "model", created: 1_700_000_000, owned_by: "scripted" }]);
    return `  - { name: ${api}, url: "${upstreams[api].url}", apis: [${api}] }`;
  });
  server = await startHeadrace({ yaml: `upstreams:\n${lines.join("\n")}\n` });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  for (const upstream of Object.values(upstreams)) await upstream[Symbol.asyncDispose]();
});

const parameters = { type: "object", properties: { city: { type: "string" } } };
const look = { type: "function", name: "look", parameters };
const patch = { type: "custom", name: "patch", description: "Changes a file." };
const logprob = { token: "lo", logprob: -0.5, bytes: null, top_logprobs: [{ token: "la", logprob: -2, bytes: null }] };

interface Scenario {
  steps: readonly ReplyStep[];
  /** What the request has beside the model and the input. */
  asked?: Json;
  /** The status of the response, and the texts and calls in its output. */
  status: "completed" | "incomplete";
  output: readonly string[];
}

const scenarios: Readonly<Record<string, Scenario>> = {
  text: { steps: [say.text("Hel"), say.text("lo"), say.end("stop")], status: "completed", output: ["Hello"] },
  "a text of a schema": {
    steps: [say.text('{"city":"Oslo"}'), say.end("stop")],
    asked: { text: { format: { type: "json_schema", name: "place", schema: parameters } } },
    status: "completed",
    output: ['{"city":"Oslo"}'],
  },
  "calls side by side": {
    steps: [
      say.text("I look."),
      ...[say.call(0, "look"), say.call(1, "look")],
      ...[say.arguments(0, '{"city":'), say.arguments(0, '"Oslo"}'), say.arguments(1, '{"city":"Rome"}')],
      say.end("calls"),
    ],
    asked: { tools: [look] },
    status: "completed",
    output: ["I look.", 'look({"city":"Oslo"})', 'look({"city":"Rome"})'],
  },
  reasoning: {
    steps: [say.thought("Let me "), say.thought("think."), say.text("Yes."), say.end("stop")],
    asked: { reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] },
    status: "completed",
    output: ["Yes."],
  },
  "reasoning as a summary": {
    steps: [say.thought("Thinking.", true), say.text("Yes."), say.end("stop")],
    asked: { reasoning: { effort: "high", summary: "auto" } },
    status: "completed",
    output: ["Yes."],
  },
  "an answer that was cut off": {
    steps: [say.text("Hel"), say.end("length")],
    status: "incomplete",
    output: ["Hel"],
  },
  "content that was withheld": {
    steps: [say.text("Hel"), say.end("filter")],
    status: "incomplete",
    output: ["Hel"],
  },
};

const modelOf = (api: Api) => `${api}-model`;

async function ask(path: string, body: Json): Promise<Response> {
  return server.request(path, { body });
}

async function eventsOf(answer: Response): Promise<Json[]> {
  const text = await answer.text();
  return text
    .split("\n\n")
    .filter((event) => !event.startsWith(":") && event !== "")
    .map((event) => {
      const [name, data] = event.split("\n");
      const parsed = JSON.parse(String(data).slice("data: ".length)) as Json;
      expect(name).toBe(`event: ${String(parsed["type"])}`);
      return parsed;
    });
}

/** No fault in any of them, and numbers without a gap. */
function expectDocumented(events: readonly Json[]): void {
  expect(events.flatMap((event) => eventFaults(event).map((fault) => `${String(event["type"])} ${fault}`))).toEqual([]);
  expect(events.map((event) => event["sequence_number"])).toEqual(events.map((_, number) => number));
}

/** Texts and calls of a response. */
function outputOf(response: unknown): string[] {
  return (response as { output: Json[] }).output.flatMap((item) => {
    const { type, name, content } = item;
    if (type === "function_call") return [`${String(name)}(${String(item["arguments"])})`];
    if (type === "custom_tool_call") return [`${String(name)}(${String(item["input"])})`];
    if (type !== "message") return [];
    return (content as Json[]).map(({ text, refusal }) => String(text ?? refusal));
  });
}

describe.each(apis)("Responses by a server that speaks only %s", (api) => {
  const model = modelOf(api);

  describe.each(Object.entries(scenarios))("%s", (_, { steps, asked = {}, status, output }) => {
    const request = { model, input: "Hi", store: false, ...asked };

    test("returns a response that fits the Open Responses document", async () => {
      upstreams[api].script(replyScript(steps));
      const response = (await (await ask("/v1/responses", request)).json()) as Json;
      expect(responseFaults(response)).toEqual([]);
      expect(response).toMatchObject({ object: "response", model, status });
      expect(outputOf(response)).toEqual([...output]);
    });

    test("streams events that fit the Open Responses document and end in the same response", async () => {
      upstreams[api].script(replyScript(steps));
      const events = await eventsOf(await ask("/v1/responses", { ...request, stream: true }));
      expectDocumented(events);
      expect(events[0]?.["type"]).toBe("response.created");
      expect(events.at(-1)).toMatchObject({ type: `response.${status}`, response: { model, status } });
      expect(outputOf(events.at(-1)?.["response"])).toEqual([...output]);
    });

    test("streams events that the openai SDK assembles", async () => {
      upstreams[api].script(replyScript(steps));
      const final = await openaiClient(server)
        .responses.stream(request as never)
        .finalResponse();
      expect(outputOf(final)).toEqual([...output]);
      expect(final.usage?.output_tokens).toBe(reportedUsage.completionTokens);
    });

    test("streams Messages events that the Anthropic SDK assembles", async () => {
      upstreams[api].script(replyScript(steps));
      const client = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
      const messages = [{ role: "user" as const, content: "Hi" }];
      const tools = asked["tools"] ? [{ name: "look", input_schema: parameters as never }] : [];
      const final = await client.messages.stream({ model, max_tokens: 99, messages, tools }).finalMessage();
      const said = final.content.flatMap((block) =>
        block.type === "text"
          ? [block.text]
          : block.type === "tool_use"
            ? [`look(${JSON.stringify(block.input)})`]
            : [],
      );
      expect(said).toEqual([...output]);
      expect(final.usage.output_tokens).toBe(reportedUsage.completionTokens);
    });
  });

  test("returns a refusal that fits the Open Responses document, whole and streamed", async () => {
    const steps = [say.refusal("I can"), say.refusal("not."), say.end(api === "messages" ? "refusal" : "stop")];
    upstreams[api].script(replyScript(steps));
    const request = { model, input: "Hi", store: false };
    const response = (await (await ask("/v1/responses", request)).json()) as Json;
    expect(responseFaults(response)).toEqual([]);
    expect(outputOf(response)).toEqual(["I cannot."]);
    const events = await eventsOf(await ask("/v1/responses", { ...request, stream: true }));
    expectDocumented(events);
    expect(outputOf(events.at(-1)?.["response"])).toEqual(["I cannot."]);
  });

  test("fits the Open Responses document except for a custom tool call, which it does not define", async () => {
    const isNative = api === "responses";
    const steps: readonly ReplyStep[] = isNative
      ? [
          (sink) => sink.call(0, { callId: "call_0", kind: "custom", name: "patch" }),
          ...[say.arguments(0, "*** Begin"), say.arguments(0, " Patch"), say.end("calls")],
        ]
      : [say.call(0, "patch"), say.arguments(0, '{"input":"*** Begin'), say.arguments(0, ' Patch"}'), say.end("calls")];
    upstreams[api].script(replyScript(steps));
    const request = { model, input: "Hi", store: false, tools: [look, patch] };
    const response = (await (await ask("/v1/responses", request)).json()) as Json;
    expect(responseFaults(response)).toEqual([]);
    const events = await eventsOf(await ask("/v1/responses", { ...request, stream: true }));
    expectDocumented(events);
    const final = await openaiClient(server)
      .responses.stream(request as never)
      .finalResponse();
    for (const one of [response, events.at(-1)?.["response"], final]) {
      expect(outputOf(one)).toEqual(["patch(*** Begin Patch)"]);
    }
  });

  test("ends the stream with a valid failed response if the engine fails in the middle", async () => {
    const fault = { status: 503, code: "overloaded", message: "Too much to do." };
    upstreams[api].script(replyScript([say.text("Hel")], fault));
    const events = await eventsOf(await ask("/v1/responses", { model, input: "Hi", store: false, stream: true }));
    expectDocumented(events);
    expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { status: "failed" } });
    const stream = openaiClient(server).responses.stream({ model, input: "Hi", store: false });
    const final = await stream.finalResponse();
    expect(final.status).toBe("failed");
  });

  describe("in the background", () => {
    const asked = { model, input: "Hi", background: true, stream: true };
    const statuses = async (id: unknown) => {
      const response = (await (await server.request(`/v1/responses/${String(id)}`)).json()) as Json;
      expect(responseFaults(response)).toEqual([]);
      return response["status"];
    };
    const idIn = ([first]: readonly Json[]) => (first?.["response"] as Json | undefined)?.["id"];

    test("returns a background response and events that fit the document, also when read again", async () => {
      upstreams[api].script(replyScript([say.thought("Hm."), say.text("Hel"), say.text("lo"), say.end("stop")]));
      const events = await eventsOf(await ask("/v1/responses", asked));
      expectDocumented(events);
      expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
        ...["response.created", "response.queued", "response.in_progress"],
      ]);
      const id = idIn(events);
      expect(await eventsOf(await server.request(`/v1/responses/${String(id)}?stream=true`))).toEqual(events);
      expect(await statuses(id)).toBe("completed");
    });

    test("ends a background response with a failed model as the document requires", async () => {
      const fault = { status: 503, code: "overloaded", message: "Too much to do." };
      upstreams[api].script(replyScript([say.text("Hel")], fault));
      const broken = await eventsOf(await ask("/v1/responses", asked));
      upstreams[api].script((_, res) => void res.writeHead(400).end('{"error":{"message":"no"}}'));
      const refused = await eventsOf(await ask("/v1/responses", asked));
      for (const events of [broken, refused]) {
        expectDocumented(events);
        expect(events.at(-1)?.["type"]).toBe("response.failed");
        expect(await statuses(idIn(events))).toBe("failed");
      }
    });

    test("ends a cancelled background response as the document requires", async () => {
      upstreams[api].script((request, res) => {
        // It never comes to its end.
        res.end = () => res;
        return replyScript([say.text("Hel"), say.text("lo"), say.end("stop")])(request, res);
      });
      const created = (await (await ask("/v1/responses", { ...asked, stream: false })).json()) as Json;
      expect(responseFaults(created)).toEqual([]);
      await server.request(`/v1/responses/${String(created["id"])}/cancel`, { method: "POST" });
      const events = await eventsOf(await server.request(`/v1/responses/${String(created["id"])}?stream=true`));
      expectDocumented(events);
      expect(events.at(-1)?.["type"]).toBe("response.incomplete");
      expect(await statuses(created["id"])).toBe("cancelled");
    });
  });

  test("ends the stream with a valid failed response if the engine breaks off in the middle", async () => {
    upstreams[api].script((request, res) => {
      replyScript([say.text("Hel"), (_sink) => void res.destroy()])(request, res);
    });
    const events = await eventsOf(await ask("/v1/responses", { model, input: "Hi", store: false, stream: true }));
    expectDocumented(events);
    expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { status: "failed" } });
  });
});

test("fits log probabilities without bytes to the Open Responses document", async () => {
  upstreams.chat.script(replyScript([say.text("lo", [logprob]), say.end("stop")]));
  const request = { model: modelOf("chat"), input: "Hi", store: false, top_logprobs: 1 };
  expect(responseFaults(await (await ask("/v1/responses", request)).json())).toEqual([]);
  expectDocumented(await eventsOf(await ask("/v1/responses", { ...request, stream: true })));
});

test("returns a compacted conversation that fits the Open Responses document", async () => {
  upstreams.chat.script(replyScript([say.text("They met."), say.end("stop")]));
  const input = [
    { role: "user", content: "Where did they meet?" },
    { role: "assistant", content: "In Oslo." },
  ];
  const compacted = await (await ask("/v1/responses/compact", { model: modelOf("chat"), input })).json();
  expect(compactionFaults(compacted)).toEqual([]);
});

test("sends WebSocket errors that fit the Open Responses document", async () => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${server.key}` },
  } as never);
  const steps = new Promise<unknown>((resolve, reject) => {
    socket.onmessage = ({ data }) => resolve(JSON.parse(String(data)));
    socket.onerror = () => reject(new Error("It was not opened."));
  });
  socket.onopen = () => socket.send(JSON.stringify({ type: "response.create", model: "unknown", input: "Hi" }));
  expect(socketErrorFaults(await steps)).toEqual([]);
  socket.close();
});

test("refuses a response with a missing or mistyped member by the Open Responses document", () => {
  expect(responseFaults({ object: "response", output: [{ type: "message" }] })).not.toEqual([]);
  expect(eventFaults({ type: "response.output_text.delta", sequence_number: "1" })).not.toEqual([]);
  expect(eventFaults({ type: "response.unheard_of", sequence_number: 1 })).not.toEqual([]);
});
