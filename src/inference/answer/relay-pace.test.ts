// Tests the relay's pace: back-pressure, heartbeats, stalled readers, and reading the rest of a connection.
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import {
  comment,
  done,
  event,
  requestFor,
  Source,
  soon,
  start,
  withoutReportedUsage,
} from "../../../tests/support/relay.ts";
import type { Dispatched } from "../routing/attempt.ts";

describe("back-pressure", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  test("pauses the engine while the client is behind, and still delivers bytes on their way", () => {
    const source = new Source();
    const { client } = start(source.dispatched);
    client.behind = true;
    source.send(event("a"));
    expect(source.paused).toBe(true);
    source.send(event("b"));
    expect(client.text).toBe(event("a") + event("b"));
    client.drain();
    expect(source.paused).toBe(false);
    source.send(event("c"));
    expect(source.paused).toBe(false);
  });

  test("pauses the engine from its first byte if the client was behind before", async () => {
    const source = new Source();
    const { promise, resolve } = Promise.withResolvers<Dispatched>();
    const { client } = start(promise, { heartbeatMs: 20 });
    client.behind = true;
    jest.advanceTimersByTime(20);
    expect(client.text).toBe(comment);
    resolve(source.dispatched);
    await soon();
    expect(source.flowing).toBe(true);
    expect(source.paused).toBe(true);
    client.drain();
    expect(source.paused).toBe(false);
  });

  // hardening: F10
  test("cuts off a client that reads nothing for 60 s, sends it no comments, and stops the engine", () => {
    const source = new Source();
    const started = start(source.dispatched);
    const { client, ends } = started;
    client.behind = true;
    source.send(event("abc"));
    jest.advanceTimersByTime(59_900);
    expect(client.text).toBe(event("abc"));
    expect([client.aborted, source.cancelled, started.aborts]).toEqual([false, false, 0]);
    jest.advanceTimersByTime(10_200);
    expect([client.aborted, source.cancelled, started.aborts]).toEqual([true, true, 1]);
    expect(ends).toEqual([
      {
        observed: { reported: undefined, deliveredBytes: 3, deliveredPieces: 1 },
        error: expect.objectContaining({ name: "AbortError" }),
      },
    ]);
    expect(source.ends).toEqual([false]);
  });

  test("does not cut off a client that reads slowly", () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched);
    for (let i = 0; i < 5; i++) {
      client.behind = true;
      source.send(event("a"));
      jest.advanceTimersByTime(50_000);
      client.drain();
    }
    expect(client.aborted).toBe(false);
    expect(ends).toHaveLength(0);
  });
});

describe("heartbeats", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  test("sends a comment for each silent interval, never in the middle of an event", () => {
    const source = new Source();
    const { client } = start(source.dispatched);
    source.send(event("a").slice(0, 30));
    jest.advanceTimersByTime(9_900);
    expect(client.text).toBe("");
    jest.advanceTimersByTime(10_200);
    expect(client.writes).toEqual([comment, comment]);
    source.send(event("a").slice(30));
    expect(client.writes[2]).toBe(event("a"));
    jest.advanceTimersByTime(9_900);
    expect(client.writes).toHaveLength(3);
  });

  test.each(["send", "sendPiece"] as const)(
    "sends no heartbeat to a stream that is never silent long enough (%s)",
    (send) => {
      const source = new Source();
      const { client } = start(source.dispatched, { ...withoutReportedUsage, heartbeatMs: 20 });
      for (let i = 0; i < 20; i++) {
        jest.advanceTimersByTime(15);
        source[send](event("a"));
      }
      expect(client.inPlace).toBe(send === "send" ? 0 : 19);
      expect(client.text).not.toContain(comment);
    },
  );

  test("sends heartbeats although the engine sends its own comments", () => {
    const source = new Source();
    const { client } = start(source.dispatched, { heartbeatMs: 20 });
    for (let i = 0; i < 10; i++) {
      source.send(": thinking\n\n");
      jest.advanceTimersByTime(5);
    }
    expect(client.text).toBe(comment + comment);
  });

  test("sends heartbeats before the engine answers, and stops them with the stream", async () => {
    const source = new Source();
    const { promise, resolve } = Promise.withResolvers<Dispatched>();
    const { client } = start(promise);
    jest.advanceTimersByTime(10_000);
    expect(client.text).toBe(comment);
    resolve(source.dispatched);
    await soon();
    source.send(event("a", "stop") + done);
    await soon();
    jest.advanceTimersByTime(100_000);
    expect(client.text).toBe(comment + event("a", "stop") + done);
  });
});

describe("bytes after [DONE]", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  test("reads the connection for one second after [DONE] to reuse it, then cancels it", () => {
    const source = new Source();
    start(source.dispatched);
    source.send(event("abc", "stop") + done);
    jest.advanceTimersByTime(900);
    expect(source.cancelled).toBe(false);
    jest.advanceTimersByTime(200);
    expect(source.cancelled).toBe(true);
  });

  test("keeps the connection if its end arrived in time after [DONE]", () => {
    const source = new Source();
    start(source.dispatched);
    source.send(event("abc", "stop") + done);
    jest.advanceTimersByTime(900);
    source.end();
    jest.advanceTimersByTime(10_000);
    expect(source.cancelled).toBe(false);
  });

  test("reads the connection after [DONE] even while the client is behind", () => {
    const source = new Source();
    const { client } = start(source.dispatched);
    client.behind = true;
    source.send(event("abc", "stop"));
    expect(source.paused).toBe(true);
    source.send(done);
    expect(source.paused).toBe(false);
  });
});

describe("a stream without an end marker", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  test("ends a stream without [DONE] one second after its finish reason, and drops the connection", async () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched);
    source.send(event("abc"));
    source.send(event("", "stop"));
    for (let beats = 0; beats < 11; beats++) {
      source.send("data:\n\n");
      jest.advanceTimersByTime(100);
    }
    await soon();
    expect(client.text).toBe(event("abc") + event("", "stop") + done);
    expect(ends).toMatchObject([{ error: undefined }]);
    expect([client.ended, source.ends]).toEqual([true, [false]]);
    for (let beats = 0; beats < 11; beats++) {
      source.send("data:\n\n");
      jest.advanceTimersByTime(100);
    }
    expect(source.cancelled).toBe(true);
  });

  test("goes on while chunks with a finish reason arrive", async () => {
    const source = new Source();
    const { client } = start(source.dispatched);
    const pieces = Array.from({ length: 5 }, (_, index) => event(`piece ${index}`, "stop"));
    for (const piece of pieces) {
      source.send(piece);
      jest.advanceTimersByTime(700);
    }
    jest.advanceTimersByTime(400);
    await soon();
    expect(client.text).toBe(pieces.join("") + done);
  });

  test("ends a stream without [DONE] at its usage chunk", async () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched);
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    source.send(event("abc", "stop"));
    source.send(`data: ${JSON.stringify({ id: "c", choices: [], usage })}\n\n`);
    await soon();
    expect(client.text).toBe(event("abc", "stop") + done);
    expect(ends[0]?.observed.reported).toMatchObject({ completionTokens: 2 });
  });

  test("counts a stream without [DONE] as whole if the connection breaks after its finish reason", async () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched);
    source.send(event("abc", "stop"));
    source.fail(new Error("ECONNRESET"));
    await soon();
    expect(client.text).toBe(event("abc", "stop") + done);
    expect(ends).toMatchObject([{ error: undefined }]);
    expect(source.ends).toEqual([false]);
  });

  test("waits for the finish reasons of all choices", async () => {
    const source = new Source();
    const { client } = start(source.dispatched, { request: requestFor({ n: 2 }) });
    source.send(event("abc", "stop"));
    jest.advanceTimersByTime(5_000);
    await soon();
    expect(client.ended).toBe(false);
    source.send(event("def", "stop").replace('"index":0', '"index":1'));
    jest.advanceTimersByTime(1_100);
    await soon();
    expect(client.text).toEndWith(done);
  });

  test("waits for a slow client before it ends a stream without [DONE]", async () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched);
    client.behind = true;
    source.send(event("abc", "stop"));
    jest.advanceTimersByTime(5_000);
    expect(ends).toEqual([]);
    client.drain();
    jest.advanceTimersByTime(1_100);
    await soon();
    expect(client.text).toEndWith(done);
  });
});

test("reads at most 64 KiB after the end of a stream", () => {
  const source = new Source();
  start(source.dispatched);
  source.send(event("abc", "stop") + done);
  source.send("x".repeat(64 * 1024));
  expect(source.cancelled).toBe(false);
  source.send("x");
  expect(source.cancelled).toBe(true);
});
