// `kill -9` between the turns of a response whose tools the gateway runs: nothing is made again, and all of it is booked once.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { bookedUsage } from "../support/booked-usage.ts";
import { until } from "../support/headrace.ts";
import { callsOf, startLoopingModel } from "../support/looping-model.ts";
import { HttpMcpServer, textResult } from "../support/mcp-servers.ts";
import { startServerProcess } from "../support/server-process.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-response-tool-kill-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const asking = { type: "mcp", server_label: "weather" } as const;
const weather = { ...asking, require_approval: "never" } as const;
const never = new Promise<never>(() => {});

test("repeats no tool call that was made before kill -9, books it once, and ends its response once", async () => {
  let called: unknown[] = [];
  await using tools = new HttpMcpServer({
    tools: {
      forecast: async (params) => {
        const { city } = params["arguments"] as { city: string };
        called.push(city);
        return city === "Slow" ? await never : textResult(`Rain in ${city}`);
      },
    },
  });
  // What the user says is the city; whoever asks for a quick one waits for the model's second turn instead.
  await using model = startLoopingModel(({ messages }) => {
    const reported = messages.findLast(({ role }) => role === "tool");
    if (reported)
      return String(reported.content).startsWith("Rain in Quick") ? never : { content: `Told: ${reported.content}` };
    const city = messages.findLast(({ role }) => role === "user")?.content;
    return callsOf("weather__forecast", { city });
  });
  const config = join(directory, "headrace.yaml");
  const dataDir = join(directory, "data");
  writeFileSync(
    config,
    `upstreams: [{ name: m, url: "${model.url}", apis: [chat] }]
models: [{ id: m, deployments: [{ upstream: m }] }]
tools: { servers: [{ name: weather, url: "${tools.url}" }] }
`,
  );
  const clientOf = (url: string) => {
    const text = readFileSync(join(dataDir, "credentials.json"), "utf8");
    const { api_key: apiKey } = JSON.parse(text) as { api_key: string };
    return new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
  };
  const background: string[] = [];
  let approval: { model: string; previous_response_id: string; input: OpenAI.Responses.ResponseInput };
  {
    await using server = await startServerProcess({ config, dataDir });
    const client = clientOf(server.url);
    const asked = await client.responses.create({ model: "m", input: "Slow", tools: [asking] });
    const id = asked.output.find(({ type }) => type === "mcp_approval_request")?.id ?? "";
    const input = [{ type: "mcp_approval_response", approval_request_id: id, approve: true } as const];
    approval = { model: "m", previous_response_id: asked.id, input };
    const drain = async (stream: boolean, city: string) => {
      const response = await client.responses.create({ model: "m", input: city, tools: [weather], stream });
      if (Symbol.asyncIterator in response) for await (const _ of response);
    };
    const open = [client.responses.create({ ...approval, tools: [asking] })] as Promise<unknown>[];
    for (const city of ["Slow", "Quick"]) {
      open.push(drain(false, city), drain(true, city));
      const begun = await client.responses.create({ model: "m", input: city, tools: [weather], background: true });
      background.push(begun.id);
    }
    const ends = Promise.allSettled(open);
    await until(() => called.length === 7 && model.turns.length === 10, "all are under way");
    // What is under way is noted within a second.
    await Bun.sleep(1_500);
    server.process.kill("SIGKILL");
    await server.process.exited;
    expect((await ends).map(({ status }) => status)).toEqual(open.map(() => "rejected"));
  }
  // Nobody waits in a test for the minute that has to pass before a process is taken for dead.
  const db = new Database(join(dataDir, "headrace.db"));
  db.run("UPDATE stored_responses SET seen_at = seen_at - 120");
  db.close();
  called = [];
  const turns = model.turns.length;
  await using server = await startServerProcess({ config, dataDir });
  const client = clientOf(server.url);
  const isOver = async (id: string) => (await client.responses.retrieve(id)).status === "failed";
  for (const id of background) {
    await until(() => isOver(id), "it is ended", 40_000);
    const events = await Array.fromAsync(await client.responses.retrieve(id, { stream: true }));
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, number) => number));
    expect(events.filter(({ type }) => type === "response.failed")).toHaveLength(1);
    expect(events.at(-1)?.type).toBe("response.failed");
    // What may have been made is told of, so that nobody asks for it again unawares.
    const { output } = await client.responses.retrieve(id);
    const ends = {
      Slow: { status: "incomplete", output: null },
      Quick: { status: "completed", output: "Rain in Quick" },
    };
    const city = id === background[0] ? "Slow" : "Quick";
    const call = { name: "forecast", arguments: JSON.stringify({ city }), ...ends[city] };
    expect(output.find(({ type }) => type === "mcp_call")).toMatchObject(call);
  }
  expect([called, model.turns.length]).toEqual([[], turns]);
  const booked = bookedUsage(dataDir);
  expect(new Set(booked.map(({ request_id }) => request_id)).size).toBe(booked.length);
  const counted = Map.groupBy(booked, ({ operation, outcome }) => `${operation} ${outcome}`);
  expect(Object.fromEntries([...counted].map(([what, rows]) => [what, rows.length]))).toEqual({
    ...{ "response completed": 7, "response interrupted": 3 },
    ...{ "tool completed": 3, "tool interrupted": 4 },
  });
  const [slow = ""] = background;
  await client.responses.create({ model: "m", input: "And?", previous_response_id: slow });
  const reported = model.turns.at(-1)?.messages.find(({ role }) => role === "tool");
  expect(reported?.content).toBe("Whether this call was made, and what came of it, is not known.");
  // Its client asks again, as it had no answer.
  const again = await client.responses.create({ ...approval, tools: [asking] });
  expect(again.output.find(({ type }) => type === "mcp_call")).toMatchObject({ status: "failed", output: null });
  expect(again.output_text).toContain("Whether it was made, and what came of it, is not known here");
  expect(called).toEqual([]);
}, 90_000);
