// A model that thinks for minutes: its stream is kept alive by comments, and no timer of ours takes silence for an end.
import { afterEach, expect, test } from "bun:test";
import { clientEvents } from "../contract/replay.ts";
import { bookedUsage } from "../support/booked-usage.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { chunk } from "../support/scripted-upstream.ts";
import { startWatchedServer } from "../support/watched-server.ts";
import { head, openRaw } from "./raw-client.ts";
import { goodAnswer, rawYaml, startRawUpstream, streamHead } from "./raw-upstream.ts";

/** Longer than each timer of the server, which the long form leaves as they are. */
const inStreamMs = long ? 610_000 : 900;
/** By default an answer has ten minutes to begin. */
const beforeFirstByteMs = long ? 590_000 : 900;
const heartbeatMs = long ? 10_000 : 60;
const short = { headMs: 250, idleMs: 250, bodyIdleMs: 250, unsentMs: 250, lingerMs: 250 };

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

// hardening: F11
test(`keeps requests alive through ${Math.round(inStreamMs / 1_000)} s of silence within a stream, before its first byte, and before a whole answer`, async () => {
  const upstream = await startRawUpstream(async (socket, { body }) => {
    if (!body.includes('"stream":true')) {
      await Bun.sleep(beforeFirstByteMs);
      socket.write(goodAnswer);
    } else if (body.includes("late")) {
      await Bun.sleep(beforeFirstByteMs);
      socket.end(`${streamHead}${chunk({ content: "thought" })}${chunk({}, "stop")}data: [DONE]\n\n`);
    } else {
      socket.write(streamHead + chunk({ role: "assistant", content: "I think" }));
      await Bun.sleep(inStreamMs);
      socket.end(`${chunk({ content: " so" })}${chunk({}, "stop")}data: [DONE]\n\n`);
    }
  });
  stack.push(upstream);
  const server = await startWatchedServer({
    yaml: rawYaml(upstream),
    ...(long ? {} : { heartbeatMs, httpLimits: short }),
  });
  stack.push(server);
  const ask = async (content: string, stream: boolean) => {
    const connection = await openRaw(server.url);
    const body = JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content }], stream });
    const lines = ["Host: 127.0.0.1", `Authorization: Bearer ${server.key}`, "Content-Type: application/json"];
    await connection.write(
      head("POST /v1/chat/completions HTTP/1.1", [...lines, `Content-Length: ${body.length}`]) + body,
    );
    const { answers } = await connection.answered(1, inStreamMs + 30_000);
    connection.socket.destroy();
    return answers[0];
  };
  const [begun, late, whole] = await Promise.all([ask("begun", true), ask("late", true), ask("whole", false)]);

  for (const [answer, text, silentMs] of [
    [begun, "I think so", inStreamMs],
    [late, "thought", beforeFirstByteMs],
  ] as const) {
    const events = [...clientEvents(answer?.body ?? "")];
    const data = events.flatMap((event) => (event.data === undefined ? [] : [event.data]));
    const comments = events.filter(({ comment }) => comment !== undefined).length;
    console.log(`${Math.round(silentMs / 1_000)} s of silence: ${comments} comments`);
    expect(data.at(-1)).toBe("[DONE]");
    const pieces = data.slice(0, -1).map((event) => JSON.parse(event).choices[0].delta.content ?? "");
    expect(pieces.join("")).toBe(text);
    // One for each silent stretch: a proxy on the way sees a byte at least that often.
    expect(comments).toBeGreaterThan(silentMs / heartbeatMs / (long ? 1.1 : 3));
  }
  expect([whole?.status, JSON.parse(whole?.body ?? "{}").choices[0].message.content]).toEqual([200, "Hello"]);
}, 700_000);

test("books a client that leaves a silent stream as cancelled without a fault", async () => {
  const upstream = await startRawUpstream(() => {});
  stack.push(upstream);
  const server = await startHeadrace({ yaml: rawYaml(upstream), heartbeatMs: 30 });
  stack.push(server);
  const client = new AbortController();
  const body = { model: "upstream-model", messages: [{ role: "user", content: "Think" }], stream: true };
  await server.request("/v1/chat/completions", { body, signal: client.signal });
  client.abort();
  const [booked] = await until(() => {
    const records = bookedUsage(server.dataDir);
    return records.length > 0 ? records : undefined;
  }, "the record");
  expect(booked).toMatchObject({ outcome: "cancelled", error_code: null, completion_tokens: 0 });
});
