// The model servers of the dashboard's tests: several models that answer in sentences, embed, or fail.
import type { ServerResponse } from "node:http";
import { encodeEmbedding } from "../../src/wire/embedding.ts";
import { json, type Script, type ScriptedUpstream, startUpstream } from "./scripted-upstream.ts";

/** Answers every request with an error. */
export const failingModel = "gale-preview";

export interface ModelServers extends AsyncDisposable {
  /** Serves all models; `south` has two of them as well. */
  north: ScriptedUpstream;
  south: ScriptedUpstream;
  /** Content of headrace.yaml that serves them. */
  yaml: string;
}

/** USD per million tokens. */
export const dashboardModels = [
  { id: "aurora-large", price: { input: 2.5, output: 10 }, context: 131_072, operation: "chat", upstreams: ["north"] },
  {
    id: "aurora-mini",
    price: { input: 0.15, output: 0.6 },
    context: 32_768,
    operation: "chat",
    upstreams: ["north", "south"],
  },
  { id: "ember-code", price: null, context: 65_536, operation: "chat", upstreams: ["south"] },
  {
    id: "atlas-embed",
    price: { input: 0.02, output: 0 },
    context: 8_192,
    operation: "embedding",
    upstreams: ["north"],
  },
  { id: failingModel, price: null, context: 16_384, operation: "chat", upstreams: ["north"] },
] as const satisfies readonly DashboardModel[];

interface DashboardModel {
  id: string;
  price: { input: number; output: number } | null;
  context: number;
  operation: "chat" | "embedding";
  upstreams: readonly ("north" | "south")[];
}

/** So many: those above, and after them others that chat, with long names that begin alike. */
export function modelsUpTo(count: number): readonly DashboardModel[] {
  const more = Array.from({ length: Math.max(0, count - dashboardModels.length) }, (_, i): DashboardModel => {
    const id = `meta-aurora/aurora-3.1-${8 * (i + 1)}b-instruct-awq`;
    return {
      id,
      price: { input: 0.1 + i / 100, output: 0.4 + i / 25 },
      context: 32_768,
      operation: "chat",
      upstreams: ["south"],
    };
  });
  return [...dashboardModels.slice(0, count), ...more];
}

/** `wordMs`: pause between two words of a stream, so that somebody can watch one. */
export async function startModelServers(wordMs: number, count: number = dashboardModels.length): Promise<ModelServers> {
  const [north, south] = await Promise.all([startUpstream(talking(wordMs)), startUpstream(talking(wordMs))]);
  const at = { north: north.url, south: south.url };
  const all = modelsUpTo(count);
  const serving = (name: string) => all.filter(({ upstreams }) => upstreams.some((one) => one === name));
  for (const [name, server] of Object.entries({ north, south })) {
    server.serves(serving(name).map(({ id }) => ({ id, object: "model", created: 1_700_000_000, owned_by: name })));
  }
  const upstreams = Object.entries(at).map(
    ([name, url]) =>
      `  - { name: ${name}, url: "${url}", api_key: sk-upstream-secret-0123456789, max_concurrency: 8 }\n`,
  );
  const models = all.map(({ id, price, context, operation, upstreams: places }) => {
    const embeds = operation === "embedding";
    const capabilities = `{ chat: ${!embeds}, completion: ${!embeds}, embeddings: ${embeds} }`;
    const priced = price ? `, price: { input: ${price.input}, output: ${price.output} }` : "";
    const deployments = places.map((upstream) => `{ upstream: ${upstream}, model: ${id} }`).join(", ");
    return `  - { id: ${id}, context: ${context}, capabilities: ${capabilities}${priced}, deployments: [${deployments}] }\n`;
  });
  return {
    ...{ north, south },
    yaml: `upstreams:\n${upstreams.join("")}models:\n${models.join("")}`,
    async [Symbol.asyncDispose]() {
      await Promise.all([north[Symbol.asyncDispose](), south[Symbol.asyncDispose]()]);
    },
  };
}

function talking(wordMs: number): Script {
  return async ({ path, body }, res) => {
    const model = String(body["model"]);
    if (model === failingModel) {
      json(res, 500, { error: { message: "The model ran out of memory.", type: "server_error" } });
    } else if (path.endsWith("/embeddings")) {
      json(res, 200, embeddingsOf(body, model));
    } else {
      await answer(res, body, { model, isChat: path.endsWith("/chat/completions"), wordMs });
    }
  };
}

interface Asked {
  model: string;
  isChat: boolean;
  wordMs: number;
}

async function answer(res: ServerResponse, body: Record<string, unknown>, { model, isChat, wordMs }: Asked) {
  const words = wordsOf(body, model);
  const most = Number(body["max_completion_tokens"] ?? body["max_tokens"] ?? words.length);
  const said = words.slice(0, most);
  const finish = said.length < words.length ? "length" : "stop";
  const usage = usageOf(body, said.length);
  const head = { id: "chatcmpl-up", created: Math.floor(Date.now() / 1000), model };
  if (body["stream"] !== true) {
    await Bun.sleep(wordMs * said.length);
    const choice = isChat ? { message: { role: "assistant", content: said.join("") } } : { text: said.join("") };
    const object = isChat ? "chat.completion" : "text_completion";
    json(res, 200, { ...head, object, choices: [{ index: 0, ...choice, finish_reason: finish }], usage });
    return;
  }
  const object = isChat ? "chat.completion.chunk" : "text_completion";
  const event = (more: object) => `data: ${JSON.stringify({ ...head, object, ...more })}\n\n`;
  const piece = (text: string, end: string | null) =>
    event({ choices: [{ index: 0, ...(isChat ? { delta: { content: text } } : { text }), finish_reason: end }] });
  res.writeHead(200, { "content-type": "text/event-stream" });
  await Bun.sleep(wordMs * 4);
  for (const word of said) {
    if (res.destroyed) return;
    res.write(piece(word, null));
    if (wordMs > 0) await Bun.sleep(wordMs);
  }
  res.write(piece("", finish));
  if ((body["stream_options"] as { include_usage?: boolean } | undefined)?.include_usage) {
    res.write(event({ choices: [], usage }));
  }
  res.end("data: [DONE]\n\n");
}

/** Each with the blank before it. */
function wordsOf(body: Record<string, unknown>, model: string): string[] {
  const messages = (body["messages"] ?? []) as { content?: unknown }[];
  const asked = String(messages.at(-1)?.content ?? body["prompt"] ?? "").slice(0, 200);
  const text = `This is ${model}. You asked: “${asked}”\n\nA headrace is the channel that leads water to a mill wheel. It keeps the flow even, so that the wheel turns at the same pace whatever the river does:\n\n- what is too much goes over the weir,\n- what is needed goes to the wheel,\n- and nothing is lost on the way.\n\nIn code: \`const flow = weir(river);\``;
  return text.split(/(?= )/);
}

function usageOf(body: Record<string, unknown>, completion_tokens: number) {
  const prompt_tokens = Math.ceil(JSON.stringify(body["messages"] ?? body["prompt"] ?? "").length / 4);
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function embeddingsOf(body: Record<string, unknown>, model: string) {
  const inputs = Array.isArray(body["input"]) ? body["input"] : [body["input"]];
  const vector = Array.from({ length: 16 }, (_, i) => Math.sin(i + 1));
  const embedding = body["encoding_format"] === "base64" ? encodeEmbedding(vector) : vector;
  const tokens = 4 * inputs.length;
  const data = inputs.map((_, index) => ({ object: "embedding", index, embedding }));
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}
