// The configuration under which Headrace is measured: every limit is in force, and none is reached.
import { nativeModel, renamedModel, upstreamModel } from "./workload.ts";

export interface ServedModels {
  /** First segment of the path at the mock upstream, by which its counters tell who asked. */
  source?: string;
  /** Number of models beside the two that are always measured. */
  moreModels?: number;
  /** Whether there is a model, too, whose upstream speaks Responses and Messages itself. */
  isNative?: boolean;
  /** MCP servers, at which more calls are under way at a time than there are connections. */
  mcpServers?: readonly { name: string; url: string }[];
  /** Left out: as Headrace measures it. */
  maxConcurrency?: number;
}

/** USD per million tokens. */
export const price = { input: 1, output: 2 };

/** Ids of equal length. */
export function moreModelIds(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `bench-model-${String(index).padStart(5, "0")}`);
}

export function servedIds({ moreModels = 0, isNative = false }: ServedModels): string[] {
  return [upstreamModel, renamedModel, ...moreModelIds(moreModels), ...(isNative ? [nativeModel] : [])];
}

/** Rates and quotas that are counted for every request and never reached. */
export const limits = `limits: { open_requests_per_key: 1000000 }
tiers:
  - name: enterprise
    requests_per_minute: 100000000
    tokens_per_minute: 10000000000
    monthly_tokens: 1000000000000
    monthly_spend: 1000000
`;

export function configuration(upstreamPort: number, options: ServedModels): string {
  const { source, maxConcurrency } = options;
  const url = `http://127.0.0.1:${upstreamPort}${source === undefined ? "" : `/${source}`}/v1`;
  const concurrency = maxConcurrency === undefined ? "" : `, max_concurrency: ${maxConcurrency}`;
  const models = servedIds(options).map(
    (id) => `  - id: ${id}
    price: { input: ${price.input}, output: ${price.output} }
    deployments: [{ upstream: ${id === nativeModel ? "native" : "mock"}, model: ${upstreamModel} }]
`,
  );
  const upstream = `url: "${url}", api_key: sk-bench-upstream-key${concurrency}`;
  const native = options.isNative ? `  - { name: native, ${upstream}, apis: [chat, responses, messages] }\n` : "";
  const tools = (options.mcpServers ?? []).map((server) => ({ ...server, max_concurrency: 256 }));
  return `upstreams:
  - { name: mock, ${upstream}, apis: [chat] }
${native}models:
${models.join("")}tools: ${JSON.stringify({ servers: tools })}
${limits}`;
}
