// The `openai` package against the built-in model: every call of the API that succeeds, and leaving in the middle.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { APIConnectionTimeoutError, APIUserAbortError, BadRequestError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import type { ChatCompletionContentPart } from "openai/resources";
import { z } from "zod";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { raised } from "../support/openai-errors.ts";
import {
  answer,
  chat,
  demoContext,
  demoEmbeddingLength,
  demoModel,
  endless,
  endlessWord,
  messages,
} from "../support/tiny-demo.ts";
import { recordedUsage } from "../support/usage-records.ts";

let server: TestServer;
let client: ReturnType<typeof openaiClient>;

beforeAll(async () => {
  server = await startHeadrace({ demo: true });
  client = openaiClient(server);
});
afterAll(() => server[Symbol.asyncDispose]());

/** The log line of the request with this id. */
function logLine(requestId: string | null | undefined) {
  return until(() => server.logged("request").find((line) => line["id"] === requestId), `the log line of ${requestId}`);
}

/** The one request that the client left since `before` such requests were logged. */
async function cancelledAfter(before: number) {
  const lines = await until(() => {
    const cancelled = cancelledRequests();
    return cancelled.length > before ? cancelled : undefined;
  }, "the log line of the cancelled request");
  await until(() => server.engine.status()[0]?.busy === 0, "the slot of the engine is free");
  return lines.at(-1);
}

function cancelledRequests() {
  return server.logged("request").filter((line) => line["outcome"] === "cancelled");
}

test("returns a chat completion with the model's answer, usage and request id", async () => {
  const completion = await client.chat.completions.create(chat);
  expect(completion.object).toBe("chat.completion");
  expect(completion.model).toBe(demoModel);
  expect(completion.choices).toHaveLength(1);
  expect(completion.choices[0]).toMatchObject({
    index: 0,
    finish_reason: "stop",
    message: { role: "assistant", content: answer },
  });
  const { prompt_tokens = 0, completion_tokens = 0, total_tokens } = completion.usage ?? {};
  expect(prompt_tokens).toBeGreaterThan(0);
  expect(completion_tokens).toBeGreaterThan(0);
  expect(total_tokens).toBe(prompt_tokens + completion_tokens);
  expect(completion._request_id).toMatch(/^req_/);
  expect(await logLine(completion._request_id)).toMatchObject({
    outcome: "completed",
    prompt_tokens,
    completion_tokens,
  });
});

test("streams the same text, first the role, last the finish reason, and usage on request", async () => {
  const { data: stream, request_id } = await client.chat.completions
    .create({ ...chat, stream: true, stream_options: { include_usage: true } })
    .withResponse();
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  expect(request_id).toMatch(/^req_/);
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(answer);
  expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  const usageChunk = chunks.at(-1);
  expect(usageChunk?.choices).toEqual([]);
  expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  expect(chunks.slice(0, -2).every((chunk) => chunk.choices[0]?.finish_reason === null)).toBe(true);
  expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
  const whole = await client.chat.completions.create(chat);
  expect(usageChunk?.usage?.prompt_tokens).toBe(whole.usage?.prompt_tokens);
  expect(usageChunk?.usage?.completion_tokens).toBe(whole.usage?.completion_tokens);
  expect(usageChunk?.usage?.total_tokens).toBe(whole.usage?.total_tokens);
});

test("counts usage of a stream without include_usage and sends none", async () => {
  const { data: stream, request_id } = await client.chat.completions.create({ ...chat, stream: true }).withResponse();
  for await (const chunk of stream) {
    expect(chunk.usage).toBeUndefined();
    expect(chunk.choices).toHaveLength(1);
  }
  const line = await logLine(request_id);
  expect(line["estimated"]).toBeUndefined();
  const recorded = await until(
    async () => (await recordedUsage(server.dataDir)).find((record) => record.request_id === request_id),
    "the usage record",
  );
  expect(recorded).toMatchObject({
    operation: "chat",
    model: demoModel,
    outcome: "completed",
    prompt_tokens: Number(line["prompt_tokens"]),
    completion_tokens: Number(line["completion_tokens"]),
    estimated: 0,
  });
});

test("assembles the final completion with the SDK's stream helper", async () => {
  const runner = client.chat.completions.stream({ ...chat, stream_options: { include_usage: true } });
  const final = await runner.finalChatCompletion();
  expect(final.choices[0]?.message.content).toBe(answer);
  expect(final.usage?.completion_tokens).toBeGreaterThan(0);
});

test("stops the engine when the client leaves a stream, and counts a cancellation with the delivered tokens", async () => {
  const before = cancelledRequests().length;
  const { data: stream, request_id } = await client.chat.completions
    .create({ ...endless, stream: true })
    .withResponse();
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content === endlessWord) break;
  const line = await cancelledAfter(before);
  expect(line).toMatchObject({ id: request_id, estimated: true });
  expect(Number(line?.["completion_tokens"])).toBeGreaterThan(0);
  const recorded = await until(
    async () => (await recordedUsage(server.dataDir)).find((record) => record.request_id === request_id),
    "the usage record",
  );
  expect(recorded).toMatchObject({ outcome: "cancelled", estimated: 1 });
});

test("ends a stream and a plain request by AbortSignal, and frees the engine", async () => {
  let before = cancelledRequests().length;
  const leaveStream = new AbortController();
  const stream = await client.chat.completions.create({ ...endless, stream: true }, { signal: leaveStream.signal });
  let received = 0;
  for await (const chunk of stream) {
    received += chunk.choices.length;
    if (received === 5) leaveStream.abort();
  }
  expect(received).toBeLessThan(endless.max_tokens);
  expect(await cancelledAfter(before)).toMatchObject({ stream: true });

  before = cancelledRequests().length;
  const leavePlain = new AbortController();
  const plain = client.chat.completions.create(endless, { signal: leavePlain.signal });
  await until(() => server.engine.status()[0]?.busy === 1, "the engine works on it");
  leavePlain.abort();
  const error = await plain.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIUserAbortError);
  expect(await cancelledAfter(before)).toMatchObject({ stream: false });
});

test("stops the engine after the client's own timeout", async () => {
  // Long enough for the request to reach the engine on a busy machine.
  const before = cancelledRequests().length;
  const error = await client.chat.completions.create(endless, { timeout: 500 }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIConnectionTimeoutError);
  await cancelledAfter(before);
});

test("returns n choices with their indexes, whole and streamed", async () => {
  const plain = await client.chat.completions.create({ ...chat, n: 2 });
  expect(plain.choices.map(({ index, message }) => [index, message.content])).toEqual([
    [0, answer],
    [1, answer],
  ]);
  const texts = ["", ""];
  for await (const { choices } of await client.chat.completions.create({ ...chat, n: 2, stream: true })) {
    for (const { index, delta } of choices) texts[index] += delta.content ?? "";
  }
  expect(texts).toEqual([answer, answer]);
});

test("ends an answer before a stop string, and at max_tokens with the reason length", async () => {
  const stopped = await client.chat.completions.create({ ...chat, stop: [" demo"] });
  expect(stopped.choices[0]?.message.content).toBe(answer.slice(0, answer.indexOf(" demo")));
  expect(stopped.choices[0]?.finish_reason).toBe("stop");
  const cut = await client.chat.completions.create({ ...chat, max_completion_tokens: 3, max_tokens: 50 });
  expect(cut.usage?.completion_tokens).toBe(3);
  expect(cut.choices[0]?.finish_reason).toBe("length");
});

test("returns an object that matches its JSON schema to chat.completions.parse", async () => {
  const shape = z.object({ mood: z.enum(["calm", "wild"]), legs: z.int(), tame: z.boolean() });
  const completion = await client.chat.completions.parse({
    ...chat,
    max_tokens: 200,
    response_format: zodResponseFormat(shape, "animal"),
  });
  const { message, finish_reason } = completion.choices[0] ?? {};
  expect(finish_reason).toBe("stop");
  const parsed = message?.parsed;
  expect(shape.parse(parsed)).toEqual(parsed as z.infer<typeof shape>);
  expect(JSON.parse(message?.content ?? "")).toEqual(parsed);
});

test("streams whole JSON for a JSON schema", async () => {
  const shape = z.object({ even: z.boolean() });
  const runner = client.chat.completions.stream({
    ...chat,
    max_tokens: 100,
    response_format: zodResponseFormat(shape, "number"),
  });
  const final = await runner.finalChatCompletion();
  expect(shape.safeParse(final.choices[0]?.message.parsed).success).toBe(true);
});

test("answers legacy completions, whole and streamed, with the same text and usage", async () => {
  const request = { model: demoModel, prompt: "Once upon a time", temperature: 0, max_tokens: 24 };
  const plain = await client.completions.create(request);
  expect(plain.object).toBe("text_completion");
  expect(plain.choices[0]?.text.length).toBeGreaterThan(0);
  expect(plain.choices[0]?.finish_reason).toBe("length");
  expect(plain.usage).toMatchObject({ completion_tokens: 24 });
  expect(plain._request_id).toMatch(/^req_/);
  let text = "";
  let usage: unknown;
  const stream = await client.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
  for await (const chunk of stream) {
    text += chunk.choices[0]?.text ?? "";
    usage = chunk.usage ?? usage;
  }
  expect(text).toBe(plain.choices[0]?.text ?? "");
  expect(usage).toMatchObject({ completion_tokens: 24, total_tokens: plain.usage?.total_tokens });
});

test("returns a choice for each of two prompts", async () => {
  const completion = await client.completions.create({
    model: demoModel,
    prompt: ["Once upon a time", "The fox"],
    temperature: 0,
    max_tokens: 4,
  });
  expect(completion.choices.map((choice) => choice.index)).toEqual([0, 1]);
  expect(completion.usage?.completion_tokens).toBe(8);
});

test("returns embeddings in the SDK's default encoding equal to those in float", async () => {
  const request = { model: demoModel, input: ["a fox in the barn", "the default port"] };
  const standard = await client.embeddings.create(request);
  const floats = await client.embeddings.create({ ...request, encoding_format: "float" });
  expect(standard.data.map(({ index, embedding }) => [index, embedding.length])).toEqual([
    [0, demoEmbeddingLength],
    [1, demoEmbeddingLength],
  ]);
  expect(standard.data).toEqual(floats.data);
  expect(standard.data[0]?.embedding).not.toEqual(standard.data[1]?.embedding ?? []);
  expect(Math.hypot(...(standard.data[0]?.embedding ?? []))).toBeCloseTo(1, 4);
  expect(standard.usage.prompt_tokens).toBeGreaterThan(0);
  expect(standard.usage.total_tokens).toBe(standard.usage.prompt_tokens);
  const single = await client.embeddings.create({ model: demoModel, input: "a fox in the barn" });
  expect(single.data[0]?.embedding).toEqual(standard.data[0]?.embedding ?? []);
});

test("lists models with their capabilities and retrieves one by id", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toEqual([demoModel]);
  const model = await client.models.retrieve(demoModel);
  expect(model).toMatchObject({
    id: demoModel,
    object: "model",
    owned_by: "headrace",
    capabilities: { chat: true, completion: true, embeddings: true },
    context_length: demoContext,
  });
  expect(model.created).toBeGreaterThan(1_700_000_000);
  expect(model._request_id).toMatch(/^req_/);
});

test("raises a BadRequestError with code and field for input that the built-in engine cannot take", async () => {
  const long = "a fox in the barn ".repeat(2_000);
  const overlong = await raised(
    () => client.chat.completions.create({ model: demoModel, messages: [{ role: "user", content: long }] }),
    BadRequestError,
  );
  expect(overlong).toMatchObject({ status: 400, code: "context_length_exceeded", param: "messages" });
  const completion = await raised(() => client.completions.create({ model: demoModel, prompt: long }), BadRequestError);
  expect(completion).toMatchObject({ status: 400, code: "context_length_exceeded", param: "prompt" });
  const video = { type: "video_url", video_url: { url: "data:," } } as unknown as ChatCompletionContentPart;
  const part = await raised(
    () => client.chat.completions.create({ model: demoModel, messages: [{ role: "user", content: [video] }] }),
    BadRequestError,
  );
  expect(part).toMatchObject({ code: "invalid_request", param: "messages[0].content[0]" });
  expect(part.message).toContain('not "video_url"');
});

test("accepts content parts and every conversation role", async () => {
  const completion = await client.chat.completions.create({
    ...chat,
    messages: [
      { role: "system", content: [{ type: "text", text: "Be brief." }] },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello! How can I help you?" },
      {
        role: "user",
        content: [
          { type: "text", text: "Who " },
          { type: "text", text: "are you?" },
        ],
      },
    ],
  });
  expect(completion.choices[0]?.message.content?.length).toBeGreaterThan(0);
  const alone = await client.chat.completions.create({ ...chat, messages });
  expect(completion.usage?.prompt_tokens).toBeGreaterThan(alone.usage?.prompt_tokens ?? Number.POSITIVE_INFINITY);
});
