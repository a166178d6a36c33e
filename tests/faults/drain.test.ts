// SIGTERM with many streams open: not ready at once, every stream comes to its end, all of it is booked, exit code 0.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { head, openRaw } from "../hostile/raw-client.ts";
import { rawYaml, startRawUpstream, streamHead } from "../hostile/raw-upstream.ts";
import { bookedUsage } from "../support/booked-usage.ts";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { chunk } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const streams = long ? 1_000 : 100;
const words = 10;

// hardening: F29
test(`truncates none of ${streams} open streams while draining, accepts no new one, and is not ready at once`, async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-drain-"));
  /** One for each stream: gives its next word, and the end behind the last. */
  const speak: (() => void)[] = [];
  await using upstream = await startRawUpstream((socket) => {
    let word = 0;
    socket.write(streamHead + chunk({ role: "assistant", content: `w${word++} ` }));
    speak.push(() => {
      if (word < words) socket.write(chunk({ content: `w${word++} ` }));
      else socket.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
    });
  });
  const config = join(directory, "headrace.yaml");
  const dataDir = join(directory, "data");
  writeFileSync(config, rawYaml(upstream, ", max_concurrency: 5000", "limits: { open_requests_per_key: 5000 }\n"));
  const server = await startServerProcess({ config, dataDir });
  try {
    const { api_key: key } = await until(
      () =>
        Bun.file(join(dataDir, "credentials.json"))
          .json()
          .catch(() => undefined),
      "the credentials",
    );
    await until(async () => (await fetch(`${server.url}/readyz`)).status === 200, "it is ready");
    const body = JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "Hi" }], stream: true });
    const lines = ["Host: 127.0.0.1", `Authorization: Bearer ${key}`, "Content-Type: application/json"];
    const request = head("POST /v1/chat/completions HTTP/1.1", [...lines, `Content-Length: ${body.length}`]) + body;
    const clients = await Promise.all(
      Array.from({ length: streams }, async () => {
        const connection = await openRaw(server.url);
        await connection.write(request);
        return connection;
      }),
    );
    await until(() => speak.length === streams, "all streams run", 20_000);
    const waiting = await openRaw(server.url);

    const startedMs = performance.now();
    server.process.kill("SIGTERM");
    await until(() => isNotReady(server.url), "it is not ready", 1_000);
    const notReadyMs = performance.now() - startedMs;
    expect(notReadyMs).toBeLessThan(withinMs(1_000));
    // A connection that was open before takes no request either.
    await waiting.write(request);
    const late = await waiting.ended(withinMs(2_000));
    expect(late.answers.filter(({ status }) => status === 200)).toEqual([]);

    for (let word = 0; word < words; word++) {
      for (const next of speak) next();
      await Bun.sleep(long ? 100 : 20);
    }
    const ends = await Promise.all(clients.map((client) => client.ended(20_000)));
    const text = Array.from({ length: words }, (_, word) => `w${word} `).join("");
    const whole = ends.filter(({ answers }) => answers[0] && spoken(answers[0].body) === `${text}[DONE]`);
    expect(whole).toHaveLength(streams);
    expect(await Promise.race([server.process.exited, Bun.sleep(withinMs(5_000))])).toBe(0);
    console.log(
      `${streams} streams: not ready after ${Math.round(notReadyMs)} ms, exit after ${Math.round(performance.now() - startedMs)} ms`,
    );
    expect(speak).toHaveLength(streams);
    const records = bookedUsage(dataDir);
    expect(records).toHaveLength(streams);
    for (const { outcome, completion_tokens } of records)
      expect([outcome, completion_tokens]).toEqual(["completed", words]);
  } finally {
    await server[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  }
}, 90_000);

/** Refused, or told so. */
async function isNotReady(url: string): Promise<boolean> {
  const response = await fetch(`${url}/readyz`, { headers: { connection: "close" } }).catch(() => undefined);
  return response?.status !== 200;
}

/** The text of a stream, with its end. */
function spoken(body: string): string {
  let text = "";
  for (const line of body.split("\n")) {
    if (!line.startsWith("data: ")) continue;
    const data = line.slice(6);
    text += data === "[DONE]" ? data : (JSON.parse(data).choices[0]?.delta.content ?? "");
  }
  return text;
}
