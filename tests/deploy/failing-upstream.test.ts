// A real Prometheus with the rules of deploy/prometheus raises an alert for an upstream that fails requests, and ends it.
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { parse } from "yaml";
import { startHeadrace, until } from "../support/headrace.ts";
import { chatScript, json, startUpstream } from "../support/scripted-upstream.ts";
import { deploy, output, temporaryDirectory } from "./tools.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Alert {
  state: string;
  labels: Record<string, string>;
}

/** Starts a Prometheus that asks `target` each second, with the rules that operators get. Returns its firing alerts. */
async function startPrometheus(target: string): Promise<() => Promise<Alert[]>> {
  const directory = await temporaryDirectory();
  stack.push(directory);
  const config = join(directory.path, "prometheus.yml");
  const { rule_files } = parse(await Bun.file(join(deploy, "prometheus", "prometheus.yml")).text());
  const scrape = { job_name: "headrace", static_configs: [{ targets: [target] }] };
  await Bun.write(
    config,
    JSON.stringify({
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: rule_files.map((file: string) => join(deploy, "prometheus", file)),
      scrape_configs: [scrape],
    }),
  );
  expect(await output(["promtool", "check", "config", config])).toContain("is valid");
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  const storage = ["--storage.tsdb.path", join(directory.path, "data")];
  const child = Bun.spawn(
    ["prometheus", "--config.file", config, ...storage, `--web.listen-address=127.0.0.1:${port}`],
    { stdout: "ignore", stderr: "ignore" },
  );
  stack.push({
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok, "Prometheus is ready", 30_000);
  return async () => {
    const { data } = (await (await fetch(`${url}/api/v1/alerts`)).json()) as { data: { alerts: Alert[] } };
    return data.alerts.filter(({ state }) => state === "firing");
  };
}

test("raises HeadraceUpstreamFailing with the cause within seconds, and ends it after the recovery", async () => {
  const upstream = await startUpstream((_request, res) => json(res, 401, { error: { message: "Incorrect API key" } }));
  stack.push(upstream);
  const server = await startHeadrace({ yaml: `upstreams:\n  - { name: bad, url: "${upstream.url}" }\n` });
  stack.push(server);
  const ask = async () => {
    const body = { model: "upstream-model", messages: [{ role: "user", content: "x" }] };
    return (await server.request("/v1/chat/completions", { body })).status;
  };
  const firing = await startPrometheus(new URL(server.url).host);
  expect(await firing()).toEqual([]);
  for (let i = 0; i < 5; i++) expect(await ask()).toBe(502);
  const alerts = await until(
    async () => {
      const found = await firing();
      return found.length > 0 ? found : undefined;
    },
    "an alert fires",
    20_000,
  );
  expect(alerts.map(({ labels }) => labels)).toMatchObject([
    { alertname: "HeadraceUpstreamFailing", upstream: "bad", model: "upstream-model", cause: "authentication" },
  ]);
  upstream.script(chatScript());
  await until(async () => (await ask()) === 200, "it works again", 20_000);
  await until(async () => (await firing()).length === 0, "no alert fires", 20_000);
}, 120_000);
