// Reads a model server's load from its metrics. vLLM, SGLang and llama-server report it in Prometheus' text format.
import type { EngineLoad } from "../domain/models/engine.ts";
import { getText, type HttpTarget } from "./http-engine.ts";

type Figure = "running" | "waiting" | "cacheUse" | "cacheHits" | "hits" | "queries";

const figures: ReadonlyMap<string, Figure> = new Map([
  ["vllm:num_requests_running", "running"],
  ["vllm:num_requests_waiting", "waiting"],
  ["vllm:kv_cache_usage_perc", "cacheUse"],
  // The metric's name until vLLM 0.10.
  ["vllm:gpu_cache_usage_perc", "cacheUse"],
  ["vllm:prefix_cache_hits", "hits"],
  ["vllm:prefix_cache_hits_total", "hits"],
  ["vllm:prefix_cache_queries", "queries"],
  ["vllm:prefix_cache_queries_total", "queries"],
  ["vllm:gpu_prefix_cache_hits_total", "hits"],
  ["vllm:gpu_prefix_cache_queries_total", "queries"],
  ["sglang:num_running_reqs", "running"],
  ["sglang:num_queue_reqs", "waiting"],
  ["sglang:token_usage", "cacheUse"],
  ["sglang:cache_hit_rate", "cacheHits"],
  ["llamacpp:requests_processing", "running"],
  ["llamacpp:requests_deferred", "waiting"],
  ["llamacpp:kv_cache_usage_ratio", "cacheUse"],
]);

const maxBytes = 2 * 1024 * 1024;
/** The statuses of a server that has no metrics, or none for this credential. They are taken as permanent. */
const never = new Set([400, 401, 403, 404, 405, 410, 501]);

/** Reads a server's load. Undefined if the server has no metrics. Rejects if the request fails for another reason. */
export async function getServerLoad(target: HttpTarget, signal: AbortSignal): Promise<EngineLoad | undefined> {
  // The path of the metrics is beside `/v1`. A prefix before `/v1` is kept, because it leads to the same server.
  const path = `${target.rootPath}/metrics`;
  const { status, text } = await getText(target, path, maxBytes, signal);
  if (status === 200) return text === undefined ? undefined : readServerLoad(text);
  if (never.has(status) || (status >= 300 && status < 400)) return undefined;
  throw new Error(`GET ${path} answered ${status}`);
}

/**
 * Returns the load from Prometheus text. Numbers of requests are summed over all models and engines of the server. Of a
 * fraction, such as the cache use, the largest value counts. Undefined if the number of running requests is missing.
 */
export function readServerLoad(text: string): EngineLoad | undefined {
  const found = new Map<Figure, { sum: number; most: number }>();
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 ? text.length : newline;
    const sample = readSample(text, start, end);
    if (sample) {
      const { sum, most } = found.get(sample.figure) ?? { sum: 0, most: 0 };
      found.set(sample.figure, { sum: sum + sample.value, most: Math.max(most, sample.value) });
    }
    start = end + 1;
  }
  const sum = (figure: Figure) => found.get(figure)?.sum;
  const part = (figure: Figure) => {
    const values = found.get(figure);
    return values ? clamped(values.most) : null;
  };
  const running = sum("running");
  if (running === undefined) return undefined;
  const queries = sum("queries") ?? 0;
  const hitRate = queries > 0 ? clamped((sum("hits") ?? 0) / queries) : null;
  return {
    running: Math.round(running),
    waiting: Math.round(sum("waiting") ?? 0),
    cacheUse: part("cacheUse"),
    cacheHits: part("cacheHits") ?? hitRate,
  };
}

/** Parses one line of Prometheus text: a name, labels, and a value. */
function readSample(text: string, start: number, end: number): { figure: Figure; value: number } | undefined {
  let nameEnd = start;
  for (; nameEnd < end; nameEnd++) {
    const code = text.charCodeAt(nameEnd);
    if (code === openBrace || code === space) break;
  }
  const figure = figures.get(text.slice(start, nameEnd));
  if (!figure) return undefined;
  const line = text.slice(nameEnd, end);
  const [first = ""] = line
    .slice(line.lastIndexOf("}") + 1)
    .trim()
    .split(" ");
  const value = Number(first);
  return first !== "" && Number.isFinite(value) && value >= 0 ? { figure, value } : undefined;
}

const [openBrace, space] = [0x7b, 0x20];

function clamped(part: number): number {
  return Math.min(1, part);
}
