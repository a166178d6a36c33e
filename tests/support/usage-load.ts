// Many clients at once, in all formats, whose answers tell random usage; and what each has to pay by what it was told.
import type { Script } from "./scripted-upstream.ts";
import { answers, type Kind, kinds, paths } from "./vendor-usage.ts";

type Json = Record<string, unknown>;

/** Pico-USD for one: six digits more than a rate of headrace.yaml has, which is USD for a million. */
export interface PicoRates {
  input: number;
  cachedInput: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
  request: number;
}

/** Fractions of nano-dollars for nearly all requests. */
export const finePrice: PicoRates = {
  ...{ input: 150_000, cachedInput: 3_500, cacheWrite: 187_500 },
  ...{ output: 600_300, reasoning: 712_900, request: 3_000 },
};

/** The same in the form of headrace.yaml and the API. */
export function priceOf(rates: PicoRates): Record<string, number> {
  const { input, cachedInput, cacheWrite, output, reasoning, request } = rates;
  const perMillion = { input, cached_input: cachedInput, cache_write: cacheWrite, output, reasoning };
  const inUsd = Object.entries(perMillion).map(([name, pico]) => [name, pico / 1e6]);
  return { ...Object.fromEntries(inUsd), request: request / 1e12 };
}

/** What a client was told that it used. */
export interface ReportedUsage {
  prompt: number;
  cached: number;
  written: number;
  completion: number;
  reasoning: number;
}

/** Whole nano-USD, rounded once and half up. */
export function nanoUsdOf({ prompt, cached, written, completion, reasoning }: ReportedUsage, rates: PicoRates): number {
  const pico =
    BigInt(prompt - cached - written) * BigInt(rates.input) +
    BigInt(cached) * BigInt(rates.cachedInput) +
    BigInt(written) * BigInt(rates.cacheWrite) +
    BigInt(completion - reasoning) * BigInt(rates.output) +
    BigInt(reasoning) * BigInt(rates.reasoning) +
    BigInt(rates.request);
  return Number((pico + 500n) / 1_000n);
}

const between = (least: number, most: number) => least + Math.floor(Math.random() * (most - least + 1));

function randomUsage(): ReportedUsage {
  const [prompt, completion] = [between(400, 4_000), between(60, 2_000)];
  const cached = Math.random() < 0.3 ? 0 : between(0, prompt);
  const written = Math.random() < 0.5 ? 0 : between(0, prompt - cached);
  return { prompt, cached, written, completion, reasoning: Math.random() < 0.4 ? 0 : between(0, completion) };
}

const inFormat: Readonly<Record<Kind, (usage: ReportedUsage) => Json>> = {
  chat: ({ prompt, cached, written, completion, reasoning }) => ({
    ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }),
  responses: ({ prompt, cached, written, completion, reasoning }) => ({
    ...{ input_tokens: prompt, output_tokens: completion, total_tokens: prompt + completion },
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    output_tokens_details: { reasoning_tokens: reasoning },
  }),
  messages: ({ prompt, cached, written, completion, reasoning }) => ({
    service_tier: "flex",
    ...{ input_tokens: prompt - cached - written, output_tokens: completion },
    ...{ cache_read_input_tokens: cached, cache_creation_input_tokens: written },
    output_tokens_details: { thinking_tokens: reasoning },
  }),
};

/** Answers each request with usage of its own, and a tier, which is a detail of each record. */
export const randomUsageScript: Script = (request, res) => {
  const kind = kinds.find((one) => request.path.endsWith(paths[one].slice("/v1".length))) ?? "chat";
  const usage = inFormat[kind](randomUsage());
  const atEnd = { output_tokens: usage["output_tokens"], output_tokens_details: usage["output_tokens_details"] };
  answers[kind]({ usage, atEnd, beside: { service_tier: "flex" } }, request.body["stream"] === true, res);
};

export interface Asked {
  url: string;
  key: string;
  model: string;
  kind: Kind;
  stream: boolean;
}

/** One request, all of whose answer was read. */
export interface Heard {
  id: string;
  status: number;
  text: string;
  reported: ReportedUsage;
}

const prompt = "a ".repeat(300);

export async function ask({ url, key, model, kind, stream }: Asked): Promise<Heard> {
  const body =
    kind === "responses"
      ? { model, input: prompt, stream, store: false }
      : {
          ...{ model, messages: [{ role: "user", content: prompt }], max_tokens: 4_000, stream },
          ...(kind === "chat" && stream ? { stream_options: { include_usage: true } } : {}),
        };
  const response = await fetch(url + paths[kind], {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const id = response.headers.get("x-request-id") ?? "";
  const said = stream ? eventsOf(text) : [JSON.parse(text) as Json];
  return { id, status: response.status, text, reported: readers[kind](said) };
}

function eventsOf(text: string): Json[] {
  const data = text.split("\n").filter((line) => line.startsWith("data: {"));
  return data.map((line) => JSON.parse(line.slice("data: ".length)) as Json);
}

const objectOf = (value: unknown) => (typeof value === "object" && value !== null ? (value as Json) : {});
const count = (value: unknown) => Number(value ?? 0);

/** The last usage that any of these has. */
function lastUsage(said: readonly Json[]): Json {
  return objectOf(said.map(({ usage, response }) => usage ?? objectOf(response)["usage"]).findLast((one) => one));
}

const readers: Readonly<Record<Kind, (said: readonly Json[]) => ReportedUsage>> = {
  chat(said) {
    const usage = lastUsage(said);
    const ofPrompt = objectOf(usage["prompt_tokens_details"]);
    return {
      ...{ prompt: count(usage["prompt_tokens"]), completion: count(usage["completion_tokens"]) },
      ...{ cached: count(ofPrompt["cached_tokens"]), written: count(ofPrompt["cache_write_tokens"]) },
      reasoning: count(objectOf(usage["completion_tokens_details"])["reasoning_tokens"]),
    };
  },
  responses(said) {
    const usage = lastUsage(said);
    const ofInput = objectOf(usage["input_tokens_details"]);
    return {
      ...{ prompt: count(usage["input_tokens"]), completion: count(usage["output_tokens"]) },
      ...{ cached: count(ofInput["cached_tokens"]), written: count(ofInput["cache_write_tokens"]) },
      reasoning: count(objectOf(usage["output_tokens_details"])["reasoning_tokens"]),
    };
  },
  messages(said) {
    const reported = said.flatMap(({ usage, message }) => [objectOf(objectOf(message)["usage"]), objectOf(usage)]);
    const last = (name: string) => reported.findLast((usage) => usage[name] != null)?.[name];
    const [cached, written] = [count(last("cache_read_input_tokens")), count(last("cache_creation_input_tokens"))];
    return {
      ...{ prompt: count(last("input_tokens")) + cached + written, completion: count(last("output_tokens")) },
      ...{ cached, written, reasoning: count(objectOf(last("output_tokens_details"))["thinking_tokens"]) },
    };
  },
};

/** `upstreams` and `models`, one of each format with the name of that, all with this price. */
export function usageYaml(url: string, rates: PicoRates): string {
  const price = JSON.stringify(priceOf(rates));
  const upstreams = kinds.map(
    (kind) => `  - { name: ${kind}, url: "${url}", discover: false, apis: [${kind}], max_concurrency: 1000 }\n`,
  );
  const models = kinds.map(
    (kind) => `  - { id: ${kind}, price: ${price}, deployments: [{ upstream: ${kind}, model: told }] }\n`,
  );
  return `tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]
upstreams:\n${upstreams.join("")}models:\n${models.join("")}`;
}
