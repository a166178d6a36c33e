// The server as it is started for real: more requests at once than Bun's own limit, all of them in flight together.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { head, openRaw } from "./raw-client.ts";
import { goodAnswer, rawYaml, startRawUpstream } from "./raw-upstream.ts";

const launcher = join(import.meta.dir, "..", "..", "bin", "headrace.mjs");

test("runs 300 requests at one model server at the same time", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-many-"));
  const waiting: (() => void)[] = [];
  await using upstream = await startRawUpstream((socket) => void waiting.push(() => socket.write(goodAnswer)));
  const config = join(directory, "headrace.yaml");
  const dataDir = join(directory, "data");
  writeFileSync(config, `engine: { demo: false }\ndiscover_local: false\n${rawYaml(upstream)}`);
  // Without the variable, as from a person's shell: the launcher has to set it.
  const { BUN_CONFIG_MAX_HTTP_REQUESTS: _, ...env } = process.env;
  const server = Bun.spawn(
    ["node", launcher, "serve", "--port", "0", "--config", config, "--data-dir", dataDir, "--log-format", "json"],
    { env: env as Record<string, string>, stdout: "pipe", stderr: "pipe" },
  );
  try {
    const credentials = join(dataDir, "credentials.json");
    const { base_url, api_key } = await until(
      () => {
        try {
          return JSON.parse(readFileSync(credentials, "utf8")) as { base_url: string; api_key: string };
        } catch {
          return undefined;
        }
      },
      "the credentials file",
      15_000,
    );
    const headers = { authorization: `Bearer ${api_key}`, "content-type": "application/json" };
    await until(
      async () => (await (await fetch(`${base_url}/models`, { headers })).text()).includes("upstream-model"),
      "the model is listed",
    );
    // This test's own process has the same limit on what it sends: plain sockets have none.
    const body = JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "x" }] });
    const clients = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const connection = await openRaw(base_url);
        await connection.write(
          head("POST /v1/chat/completions HTTP/1.1", [
            "Host: 127.0.0.1",
            `Authorization: Bearer ${api_key}`,
            "Content-Type: application/json",
            `Content-Length: ${body.length}`,
          ]) + body,
        );
        return connection;
      }),
    );
    await until(() => waiting.length === 300, "all 300 are in flight", 10_000).catch((error: unknown) => {
      throw new Error(`Only ${waiting.length} of 300 are in flight`, { cause: error });
    });
    // Meanwhile the server still answers others.
    expect((await fetch(`${base_url}/models`, { headers })).status).toBe(200);
    for (const answer of waiting) answer();
    const statuses = await Promise.all(
      clients.map(async (client) => (await client.answered(1, 10_000)).answers[0]?.status),
    );
    for (const client of clients) client.socket.destroy();
    expect(statuses.filter((status) => status === 200)).toHaveLength(300);
  } finally {
    server.kill("SIGTERM");
    await server.exited;
    rmSync(directory, { recursive: true, force: true });
  }
  expect(server.exitCode).toBe(0);
});
