// An OpenAI-compatible server behind the gateway: bytes kept, usage counted, faults told clearly.
import { expect, test } from "bun:test";
import { startGatedUpstream } from "../support/gated-upstream.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { chatScript, chunk, json, startUpstream, upstreamYaml, usage } from "../support/scripted-upstream.ts";

const messages = [{ role: "user", content: "Hi" }];

test("passes a plain answer byte for byte if nothing must change", async () => {
  await using upstream = await startUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const body =
    '{"model": "upstream-model",  "messages":[{"role":"user","content":"Hi"}], "x_unknown": 12345678901234567890, "seed":1.0}';
  const response = await server.request("/v1/chat/completions", { body });
  expect(response.status).toBe(200);
  expect(upstream.requests[0]?.text).toBe(body);
  expect(await response.json()).toMatchObject({ model: "upstream-model", usage });
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
});

test("keeps the client's headers from the model server, and the upstream's key from everyone else", async () => {
  await using upstream = await startUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  await server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages },
    headers: { cookie: "a=b", "x-secret": "1" },
  });
  const headers = upstream.requests[0]?.headers ?? {};
  expect(headers.authorization).toBe("Bearer sk-upstream-secret-0123456789");
  expect(Object.keys(headers).sort()).toEqual(
    [
      "accept",
      "accept-encoding",
      "authorization",
      "connection",
      "content-length",
      "content-type",
      "host",
      "user-agent",
      "x-request-id",
    ].sort(),
  );
});

test("requests usage from the model server and counts it, but sends the usage chunk only on request", async () => {
  await using upstream = await startUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const plain = await (
    await server.request("/v1/chat/completions", { body: { model: "upstream-model", messages, stream: true } })
  ).text();
  expect(upstream.requests[0]?.body["stream_options"]).toEqual({ include_usage: true });
  expect(plain).not.toContain("usage");
  expect(plain.endsWith("data: [DONE]\n\n")).toBe(true);
  const line = await until(
    () => server.logged("request").find((entry) => entry["stream"] === true),
    "the log line of the stream",
  );
  expect(line).toMatchObject({ outcome: "completed", prompt_tokens: 7, completion_tokens: 2 });

  const body = { model: "upstream-model", messages, stream: true, stream_options: { include_usage: true } };
  const events = (await (await server.request("/v1/chat/completions", { body })).text()).split("\n\n").filter(Boolean);
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)));
  expect(chunks.slice(0, -1).every((entry) => entry.usage === null)).toBe(true);
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
});

test("renames a model with another public id in both directions", async () => {
  await using upstream = await startUpstream();
  const yaml = upstreamYaml(
    upstream,
    "models:\n  - { id: my/model, deployments: [{ upstream: up, model: upstream-model }] }\n",
  );
  await using server = await startHeadrace({ yaml });
  const plain = await (await server.request("/v1/chat/completions", { body: { model: "my/model", messages } })).json();
  expect(upstream.requests[0]?.body["model"]).toBe("upstream-model");
  expect(plain.model).toBe("my/model");
  const streamed = await (
    await server.request("/v1/chat/completions", { body: { model: "my/model", messages, stream: true } })
  ).text();
  expect(streamed).not.toContain("upstream-model");
  for (const path of ["/v1/models/my/model", "/v1/models/my%2Fmodel"]) {
    expect(await (await server.request(path)).json()).toMatchObject({ id: "my/model", object: "model" });
  }
});

test("sends an error event and no [DONE] if a model server breaks off, and books the delivered part", async () => {
  await using upstream = await startUpstream((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "Some text that was delivered" }));
    setTimeout(() => res.destroy(), 20);
  });
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const text = await (
    await server.request("/v1/chat/completions", { body: { model: "upstream-model", messages, stream: true } })
  ).text();
  const last = text.trim().split("\n\n").at(-1) ?? "";
  expect(JSON.parse(last.slice(6)).error).toMatchObject({ code: "upstream_error", type: "api_error" });
  expect(text).not.toContain("[DONE]");
  const line = await until(
    () => server.logged("request").find((entry) => entry["outcome"] === "failed"),
    "the log line",
  );
  expect(Number(line["completion_tokens"])).toBeGreaterThan(0);
});

test("stops the model server's work within a second after its client leaves", async () => {
  await using upstream = await startUpstream((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "begin" }));
  });
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const client = new AbortController();
  const response = await server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages, stream: true },
    signal: client.signal,
  });
  await response.body?.getReader().read();
  client.abort();
  await until(() => upstream.requests[0]?.abandoned, "the model server sees the hang-up", 1_000);
  const line = await until(
    () => server.logged("request").find((entry) => entry["outcome"] === "cancelled"),
    "the log line",
  );
  expect(line["estimated"]).toBe(true);
});

test("keeps a silent stream alive by comments", async () => {
  let release = () => {};
  await using upstream = await startUpstream(async (request, res) => {
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return chatScript()(request, res);
  });
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream), heartbeatMs: 30 });
  const response = await server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages, stream: true },
  });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const first = new TextDecoder().decode((await reader.read()).value);
  expect(first).toStartWith(": keep-alive\n");
  release();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read())
    rest += new TextDecoder().decode(part.value);
  expect(rest).toEndWith("data: [DONE]\n\n");
});

test("keeps a silent Messages stream alive by comments before it begins and by pings after", async () => {
  await using upstream = await startGatedUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream), heartbeatMs: 30 });
  const body = { model: "upstream-model", max_tokens: 10, messages, stream: true };
  const response = await server.request("/v1/messages", { body });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let received = "";
  const tells = async (part: string) => {
    while (!received.includes(part)) received += new TextDecoder().decode((await reader.read()).value);
  };
  await until(() => upstream.open() === 1, "the model is asked");
  upstream.say("Hello");
  await tells("Hello");
  received = "";
  await tells('event: ping\ndata: {"type":"ping"}\n\n');
  expect(received).not.toContain(": keep-alive");
  upstream.finish();
  await tells("event: message_stop");
});

test("tries the next deployment before the first byte if one is busy or failing", async () => {
  await using broken = await startUpstream((_request, res) => json(res, 500, { error: { message: "boom" } }));
  await using busy = await startUpstream((_request, res) => json(res, 429, { error: { message: "slow down" } }));
  await using good = await startUpstream();
  const deployments = ["a", "b", "c"].map((upstream) => `{ upstream: ${upstream}, model: upstream-model }`).join(", ");
  const yaml = `upstreams:
  - { name: a, url: "${broken.url}" }
  - { name: b, url: "${busy.url}" }
  - { name: c, url: "${good.url}" }
models:
  - { id: m, deployments: [${deployments}] }
`;
  await using server = await startHeadrace({ yaml });
  for (let i = 0; i < 6; i++) {
    expect((await server.request("/v1/chat/completions", { body: { model: "m", messages } })).status).toBe(200);
  }
  expect(good.requests).toHaveLength(6);
});

test("passes on a model server's refusal without addresses and credentials", async () => {
  await using upstream = await startUpstream((_request, res) =>
    json(res, 400, {
      error: { message: "maximum context is 10 tokens, see http://10.0.0.1/x with sk-upstream-secret-0123456789" },
    }),
  );
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const response = await server.request("/v1/chat/completions", { body: { model: "upstream-model", messages } });
  expect(response.status).toBe(400);
  expect((await response.json()).error).toEqual({
    message: "maximum context is 10 tokens, see [address] with [redacted]",
    type: "invalid_request_error",
    code: "invalid_request",
  });
});

test("streams the answer of a model server that ignores `stream: true`, and counts its usage", async () => {
  await using upstream = await startUpstream((request, res) => chatScript()({ ...request, body: {} }, res));
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const body = { model: "upstream-model", messages, stream: true, stream_options: { include_usage: true } };
  const events = (await (await server.request("/v1/chat/completions", { body })).text()).split("\n\n").filter(Boolean);
  expect(events.at(-1)).toBe("data: [DONE]");
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)));
  expect(chunks[0]).toMatchObject({
    object: "chat.completion.chunk",
    usage: null,
    choices: [{ index: 0, delta: { role: "assistant", content: "Hello world" }, finish_reason: "stop" }],
  });
  expect(chunks[1]).toMatchObject({ choices: [], usage });
});

test("refuses too few or non-numeric embeddings instead of returning wrong vectors", async () => {
  const answers: unknown[] = [[], [{ index: 0, embedding: [1, null] }], [{ index: 0, embedding: [1e39] }]];
  await using upstream = await startUpstream((_request, res) =>
    json(res, 200, {
      object: "list",
      model: "upstream-model",
      data: answers.shift(),
      usage: { prompt_tokens: 1, total_tokens: 1 },
    }),
  );
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  for (let i = 0; i < 3; i++) {
    const response = await server.request("/v1/embeddings", {
      body: { model: "upstream-model", input: "a", encoding_format: "base64" },
    });
    expect([response.status, (await response.json()).error?.code]).toEqual([502, "upstream_error"]);
  }
});

test("ends a stream that outlives the drain period with an error event and its reason", async () => {
  await using upstream = await startUpstream((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "begin" }));
  });
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const response = await server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages, stream: true },
  });
  const text = response.text();
  await until(() => upstream.requests.length === 1, "the stream is open");
  await Bun.sleep(50);
  await server.close(100);
  const last = (await text).trim().split("\n\n").at(-1) ?? "";
  expect(JSON.parse(last.slice(6)).error).toMatchObject({ code: "service_unavailable" });
  expect(server.logged("request").at(-1)).toMatchObject({ outcome: "failed", code: "service_unavailable" });
});
