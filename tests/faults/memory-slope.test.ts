// Six equal loads with quiet between them: neither the live heap nor the resident memory grows with the number of requests.
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { chatScript, chunk, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const loads = 6;
/** `MEMORY_REQUESTS=6000 npm run test:long -- tests/faults/memory-slope.test.ts` for another load. */
const requests = Number(process.env["MEMORY_REQUESTS"] ?? (long ? 20_000 : 300));
const quietMs = long ? 60_000 : 1_000;
/** Growth in bytes a request. A short load tells a leak of kilobytes alone, as what was compiled and cached counts as well. */
const maxSlope = long ? 50 : 3_000;

const directory = mkdtempSync(join(tmpdir(), "headrace-memory-"));
const config = join(directory, "headrace.yaml");
const heapFile = join(directory, "heap.json");
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Sample {
  heapBytes: number;
  rssBytes: number;
}

/** The median of the slopes between all pairs, which one odd sample does not move. */
function slope(values: readonly number[]): number {
  const slopes = values.flatMap((to, j) => values.slice(0, j).map((from, i) => (to - from) / (j - i)));
  return (slopes.sort((a, b) => a - b)[Math.floor(slopes.length / 2)] ?? 0) / requests;
}

test(
  `leaves at most ${maxSlope} bytes per request behind after six loads of ${requests} requests`,
  async () => {
    await using upstream = await startUpstream();
    upstream.script(async (request, response) => {
      upstream.requests.length = 0;
      if (request.body["stream"] !== true) return await chatScript()(request, response);
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (let n = 0; n < 8; n++) response.write(chunk({ content: "word " }));
      response.write(chunk({}, "stop", { usage: { prompt_tokens: 7, completion_tokens: 8, total_tokens: 15 } }));
      response.end("data: [DONE]\n\n");
    });
    const tiers = "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]\n";
    writeFileSync(config, upstreamYaml(upstream, tiers));
    const dataDir = join(directory, "data");
    await using server = await startServerProcess({
      ...{ dataDir, config, env: { SOAK_HEAP_FILE: heapFile } },
      preload: join(import.meta.dir, "..", "fixtures", "live-heap.ts"),
    });
    const { pid } = server.process;
    const { api_key: key } = (await Bun.file(join(dataDir, "credentials.json")).json()) as { api_key: string };

    let asked = 0;
    const ask = async () => {
      const n = asked++;
      const messages = [{ role: "user", content: `Question ${n}, which nobody asked before` }];
      const model = "upstream-model";
      const [path, body] = (
        [
          ["/v1/chat/completions", { model, messages }],
          ["/v1/chat/completions", { model, messages, stream: true }],
          ["/v1/messages", { model, messages, max_tokens: 10 }],
          ["/v1/responses", { model, input: messages, store: false }],
          ["/v1/chat/completions", { model: `unknown-${n % 10}`, messages }],
          ["/v1/models", undefined],
        ] as const
      )[n % 6] as readonly [string, object | undefined];
      const response = await fetch(server.url + path, {
        method: body ? "POST" : "GET",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
      await response.text();
      expect([200, 404]).toContain(response.status);
    };
    const load = async () => {
      let left = requests;
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          while (left-- > 0) await ask();
        }),
      );
    };
    const sample = async (): Promise<Sample> => {
      await Bun.sleep(quietMs);
      rmSync(heapFile, { force: true });
      server.process.kill("SIGUSR2");
      await until(() => existsSync(heapFile), "the heap is told");
      const { heapSize } = (await Bun.file(heapFile).json()) as { heapSize: number };
      const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
      return { heapBytes: heapSize, rssBytes: Number(rss) * 1024 };
    };

    await load();
    const samples: Sample[] = [];
    for (let n = 0; n < loads; n++) {
      await load();
      samples.push(await sample());
    }
    const shown = samples.map(
      ({ heapBytes, rssBytes }) => `${(heapBytes / 1e6).toFixed(1)}/${(rssBytes / 1e6).toFixed(0)}`,
    );
    const [heapSlope, rssSlope] = [samples.map((s) => s.heapBytes), samples.map((s) => s.rssBytes)].map(slope);
    console.log(
      `heap/resident MB ${shown.join(" ")}; ${heapSlope?.toFixed(0)} and ${rssSlope?.toFixed(0)} bytes a request`,
    );
    expect(heapSlope).toBeLessThan(maxSlope);
    if (long) expect(rssSlope).toBeLessThan(maxSlope);
  },
  long ? 3_600_000 : 60_000,
);
