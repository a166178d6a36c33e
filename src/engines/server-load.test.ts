// Tests the load in the metrics of model servers, in the format of each.
import { expect, test } from "bun:test";
import { readServerLoad } from "./server-load.ts";

test("reads requests and cache use of vLLM among hundreds of other lines", () => {
  const text = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-8B"} 3.0
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-8B"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 99.0
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3-8B"} 0.25
vllm:prefix_cache_queries_total{engine="0"} 2000.0
vllm:prefix_cache_hits_total{engine="0"} 1.5e+03
vllm:request_success_total{finished_reason="stop"} 17.0
`;
  expect(readServerLoad(text)).toEqual({ running: 3, waiting: 2, cacheUse: 0.25, cacheHits: 0.75 });
});

test("adds up several engines of a server, with the fullest cache, any labels and no timestamps", () => {
  const text = [
    'vllm:num_requests_running{model_name="a} 9 \\"b"} 3 1790000000000',
    'vllm:num_requests_running{model_name="c"} 4',
    'vllm:gpu_cache_usage_perc{model_name="a"} 0.5',
    'vllm:gpu_cache_usage_perc{model_name="c"} 0.75',
  ].join("\r\n");
  expect(readServerLoad(text)).toEqual({ running: 7, waiting: 0, cacheUse: 0.75, cacheHits: null });
});

test("reads the load of SGLang and llama-server", () => {
  expect(
    readServerLoad(
      'sglang:num_running_reqs{m="x"} 5.0\nsglang:num_queue_reqs{m="x"} 1.0\nsglang:token_usage{m="x"} 0.9\nsglang:cache_hit_rate{m="x"} 0.4',
    ),
  ).toEqual({ running: 5, waiting: 1, cacheUse: 0.9, cacheHits: 0.4 });
  expect(readServerLoad("llamacpp:requests_processing 2\nllamacpp:requests_deferred 6\n")).toEqual({
    running: 2,
    waiting: 6,
    cacheUse: null,
    cacheHits: null,
  });
});

test.each([
  "",
  "<html>not found</html>",
  "process_cpu_seconds_total 3",
  "vllm:num_requests_running NaN",
  "vllm:num_requests_running",
  'vllm:num_requests_running{model_name="never closed',
  "vllm:num_requests_running -4",
])("reads no load from text without numbers of requests: %j", (text) => {
  expect(readServerLoad(text)).toBeUndefined();
});
