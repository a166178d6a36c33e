// Machines that join a gateway: what operators approve of what they announce is served through them, metered as anything else.
import { afterEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { until } from "../support/headrace.ts";
import { type Gateway, type JoinOptions, joinNode, startGateway, type TestNode } from "../support/nodes.ts";
import { chatScript, type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const messages = [{ role: "user" as const, content: "Hi" }];
const model = "upstream-model";
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

interface World {
  gateway: Gateway;
  node: TestNode;
  upstream: ScriptedUpstream;
}

async function network(options: JoinOptions & { script?: Script } = {}): Promise<World> {
  const { script, ...join } = options;
  const upstream = await started(startUpstream(script));
  const gateway = await started(startGateway());
  const node = await started(joinNode(gateway, { yaml: upstreamYaml(upstream), models: [model], ...join }));
  return { gateway, node, upstream };
}

const ask = (gateway: Gateway, more: Record<string, unknown> = {}) =>
  gateway.request("/v1/chat/completions", { body: { model, messages, ...more } });

test("a streamed request of the openai SDK goes through the node, and is metered under the node's name", async () => {
  const { gateway, upstream } = await network({ script: chatScript(["Hello", " from", " afar"]) });
  const client = new OpenAI({ apiKey: gateway.key, baseURL: gateway.baseUrl });
  const stream = await client.chat.completions.create({ model, messages, stream: true });
  let text = "";
  for await (const part of stream) text += part.choices[0]?.delta.content ?? "";
  expect(text).toBe("Hello from afar");
  expect(upstream.requests).toHaveLength(1);
  const row = await until(async () => {
    const list = (await (await gateway.request("/v1/requests")).json()) as { data: Record<string, unknown>[] };
    return list.data[0];
  }, "the usage row");
  expect(row).toMatchObject({ model, upstream: "gpu-1", prompt_tokens: 7, completion_tokens: 2 });
});
