// `kill -9` in the middle of realtime sessions: each response is on the ledger once, with what was told of it, or what was delivered a second ago.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bookedUsage } from "../support/booked-usage.ts";
import { until } from "../support/headrace.ts";
import { startRealtimeUpstream } from "../support/realtime-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-realtime-kill-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("books reported realtime usage and running responses once after kill -9", async () => {
  await using upstream = startRealtimeUpstream();
  const config = join(directory, "headrace.yaml");
  const dataDir = join(directory, "data");
  writeFileSync(config, `upstreams: [{ name: up, url: "${upstream.url}" }]\n`);
  let done = 0;
  {
    await using server = await startServerProcess({ config, dataDir });
    const { api_key: key } = (await Bun.file(join(dataDir, "credentials.json")).json()) as { api_key: string };
    const talk = () => {
      const url = `${server.baseUrl.replace("http", "ws")}/realtime?model=rt-own-name`;
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } } as never);
      const ask = () => socket.send('{"type":"response.create"}');
      socket.onmessage = ({ data }) => {
        const { type } = JSON.parse(String(data)) as { type: string };
        if (type === "session.created") ask();
        if (type !== "response.done") return;
        done++;
        ask();
      };
    };
    for (let i = 0; i < 6; i++) talk();
    await until(() => done >= 60, "some responses are over");
    upstream.speaks("endless");
    // Checkpoints are a second apart.
    const begun = upstream.begun;
    await until(() => upstream.begun >= begun && upstream.begun === done + 6, "each session is in the middle of one");
    await Bun.sleep(1_200);
    server.process.kill("SIGKILL");
    await server.process.exited;
  }
  await using _ = await startServerProcess({ config, dataDir });
  const records = await until(() => {
    const found = bookedUsage(dataDir);
    return found.length >= done + 6 ? found : undefined;
  }, "all are booked");
  expect(records).toHaveLength(upstream.begun);
  const reported = records.filter(
    ({ completion_tokens: tokens, prompt_tokens: prompt }) => tokens === 13 && prompt === 100,
  );
  expect(reported.length).toBe(done);
  // What was under way has what was delivered at its last checkpoint.
  const others = records.filter((record) => !reported.includes(record));
  expect(others).toHaveLength(6);
  for (const { completion_tokens: tokens } of others) expect(Number(tokens)).toBeGreaterThan(0);
}, 60_000);
