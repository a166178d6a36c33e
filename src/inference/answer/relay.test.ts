// Tests what the relay forwards, and that each end is reported exactly once.
import { describe, expect, test } from "bun:test";
import {
  comment,
  done,
  event,
  requestFor,
  Source,
  settled,
  soon,
  start,
  withoutReportedUsage,
} from "../../../tests/support/relay.ts";
import { BufferedBytes, NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import { GatewayError } from "../../base/errors.ts";

test("reports the queue position at once and during silence until an engine takes the request", async () => {
  const late = Promise.withResolvers<Source["dispatched"]>();
  const queuePosition = { place: 3, of: 12, waitedMs: 9, expectedMs: 4_200 };
  const { client } = start(late.promise, { heartbeatMs: 20, queuePosition });
  const queued = ": queued, place 3 of 12, about 4 s\n";
  expect(client.writes).toEqual([queued]);
  while (client.writes.length < 2) await Bun.sleep(5);
  expect(client.writes[1]).toBe(queued);
  const source = new Source();
  late.resolve(source.dispatched);
  await settled();
  const before = client.writes.length;
  while (client.writes.length === before) await Bun.sleep(5);
  expect(client.writes.at(-1)).toBe(comment);
  source.send(event("a"));
  expect(client.writes.at(-1)).toBe(event("a"));
});

describe("passing on", () => {
  test("writes the events of one read in one write, synchronously", () => {
    const source = new Source();
    const { client } = start(source.dispatched);
    source.send(event("a") + event("b") + event("c").slice(0, 40));
    expect(client.writes).toEqual([event("a") + event("b")]);
    source.send(event("c").slice(40));
    expect(client.writes[1]).toBe(event("c"));
  });

  test("passes on text of any alphabet unchanged, however it is split", () => {
    const sent = event("Grüße") + event("日本") + event("🚀 \n\"'\\");
    const bytes = Buffer.from(sent);
    const cuts = [[bytes], Array.from(bytes, (byte) => new Uint8Array([byte]))];
    for (const pieces of cuts) {
      const source = new Source();
      const started = start(source.dispatched);
      for (const piece of pieces) source.send(piece);
      expect(started.client.text).toBe(sent);
      expect(started.recorded.join("")).toBe(sent);
      expect(started.pieces.at(-1)).toMatchObject({
        deliveredBytes: Buffer.byteLength("Grüße日本🚀 \n\"'\\"),
        deliveredPieces: 3,
      });
      started.left.cancel();
    }
  });

  test("passes on a repeated event from the receive buffer like any other", () => {
    const sent = [event(""), event("a"), event("b"), event("\u00fc"), event("c"), ": comment\n\n", event("d")];
    const more = [
      event("e").slice(0, -1),
      `\n${event("f")}`,
      event("g") + event("h"),
      event("i"),
      ": comm",
      event("j"),
    ];
    const last = [event("k"), event("l"), event("", "stop"), event("m"), done, event("n")];
    const [asText, inPlace] = (["send", "sendPiece"] as const).map((send) => {
      const source = new Source();
      const received: number[] = [];
      const { client, ends } = start(source.dispatched, {
        recorded: false,
        onPiece({ deliveredPieces }, due) {
          received.push(deliveredPieces);
          due.dueMs = Number.POSITIVE_INFINITY;
          due.duePieces = deliveredPieces + 4;
        },
      });
      for (const bytes of [...sent, ...more, ...last]) source[send](bytes);
      return {
        inPlace: client.inPlace,
        result: { writes: client.writes, received, ends, firstBytes: source.firstBytes },
      };
    });
    expect(inPlace?.result).toEqual(asText?.result as NonNullable<typeof asText>["result"]);
    expect(inPlace?.result).toMatchObject({ received: [0, 5, 10], firstBytes: 1 });
    expect(inPlace?.result.writes.join("")).toContain(event("b") + event("\u00fc") + event("c") + event("d"));
    expect([asText?.inPlace, inPlace?.inPlace]).toEqual([0, 4]);
  });

  test("applies back-pressure and cancellation to events passed on from the receive buffer", () => {
    const source = new Source();
    const { client, left: clientGone } = start(source.dispatched, withoutReportedUsage);
    for (const text of "ab") source.sendPiece(event(text));
    client.behind = true;
    source.sendPiece(event("c"));
    expect([source.paused, client.writes.at(-1)]).toEqual([true, event("c")]);
    client.drain();
    expect(source.paused).toBe(false);
    clientGone.cancel();
    source.sendPiece(event("d"));
    expect(client.writes).toHaveLength(3);
  });

  test("does not pass on from the receive buffer in the middle of another event", () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched, withoutReportedUsage);
    for (const bytes of [event("a"), event("b"), "data: {\n", event("c")]) source.sendPiece(bytes);
    expect(client.writes.slice(0, 2)).toEqual([event("a"), event("b")]);
    expect(ends).toMatchObject([{ error: { code: "upstream_error" } }]);
  });

  test("counts an event as delivered even if its report fails", async () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched, {
      recorded: false,
      onPiece({ deliveredPieces }, due) {
        due.dueMs = Number.POSITIVE_INFINITY;
        due.duePieces = 3;
        if (deliveredPieces > 3) throw new GatewayError("internal_error", "Not today.");
      },
    });
    for (const text of "abcde") source.sendPiece(event(text));
    await soon();
    expect(client.text).toStartWith(`${event("a") + event("b") + event("c") + event("d")}data: {"error":`);
    expect(ends).toMatchObject([{ observed: { deliveredPieces: 4 }, error: { code: "internal_error" } }]);
    expect(source.cancelled).toBe(true);
  });

  test("records each of several similar events", () => {
    const source = new Source();
    const { recorded } = start(source.dispatched, { ...withoutReportedUsage, recorded: true });
    for (const text of "abc") source.sendPiece(event(text));
    expect(recorded.join("")).toBe(event("a") + event("b") + event("c"));
  });

  test("reports progress before each piece but the last", () => {
    const source = new Source();
    const { pieces, ends } = start(source.dispatched);
    source.send(event("abc"));
    source.send(": a comment\n\n");
    source.send(event("de") + event("f"));
    source.send(event("", "stop") + done);
    expect(pieces).toEqual([
      { reported: undefined, deliveredBytes: 3, deliveredPieces: 1 },
      { reported: undefined, deliveredBytes: 6, deliveredPieces: 3 },
    ]);
    expect(ends).toHaveLength(1);
    expect(source.firstBytes).toBe(1);
  });

  test("reports progress again after the requested number of pieces", () => {
    const received: number[] = [];
    const source = new Source();
    start(source.dispatched, {
      onPiece: ({ deliveredPieces }, due) => {
        received.push(deliveredPieces);
        due.dueMs = performance.now() + 600_000;
        due.duePieces = deliveredPieces + 2;
      },
    });
    for (const text of "abcdefgh") source.send(event(text));
    expect(received).toEqual([1, 4, 7]);
    source.send(event("i"));
    source.send(event("j"));
    expect(received).toEqual([1, 4, 7, 10]);
  });

  test("reports progress again after the requested time, however few pieces came", async () => {
    const received: number[] = [];
    const source = new Source();
    start(source.dispatched, {
      onPiece: ({ deliveredPieces }, due) => {
        received.push(deliveredPieces);
        due.dueMs = performance.now() + 50;
        due.duePieces = 1_000;
      },
    });
    source.send(event("a"));
    await Bun.sleep(80);
    source.send(event("b"));
    expect(received).toEqual([1, 2]);
  });

  test("passes on a whole answer as one chunk if the engine ignores `stream: true`", async () => {
    const source = new Source("application/json; charset=utf-8");
    const { client, ends } = start(source.dispatched);
    const message = { role: "assistant", content: "Grüße" };
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    source.send(JSON.stringify({ id: "c", choices: [{ index: 0, message, finish_reason: "stop" }], usage }));
    source.end();
    await settled();
    const [chunk] = client.text.split("\n\n");
    expect(JSON.parse(chunk?.slice(6) ?? "")).toMatchObject({
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: message, finish_reason: "stop" }],
    });
    expect(client.text).toEndWith(done);
    expect(client.ended).toBe(true);
    expect(ends[0]?.observed).toMatchObject({ deliveredBytes: 7, reported: { completionTokens: 2 } });
    expect(source.ends).toEqual([false]);
  });

  test("estimates the usage of a whole answer in place of a stream if it reports none", async () => {
    const source = new Source("application/json");
    const { ends } = start(source.dispatched);
    const message = { role: "assistant", content: "Grüße" };
    source.send(JSON.stringify({ id: "c", choices: [{ index: 0, message, finish_reason: "stop" }] }));
    source.end();
    await settled();
    expect(ends[0]?.observed.reported).toMatchObject({ completionTokens: 2, estimated: true });
  });

  test("turns an error with status 200 into an error event", async () => {
    const source = new Source("application/json");
    const { client, ends } = start(source.dispatched);
    source.send('{"error":{"message":"boom é"}}');
    source.end();
    await settled();
    expect(client.text).toBe('data: {"error":{"message":"boom é","type":"t","code":"upstream_error"}}\n\n');
    expect(ends).toHaveLength(1);
    expect(source.ends).toEqual([true]);
  });
});

describe("ends", () => {
  const observedAbc = { reported: undefined, deliveredBytes: 3, deliveredPieces: 1 };

  test("ends a whole stream once, without an error, and marks the engine as successful", async () => {
    const source = new Source();
    const started = start(source.dispatched);
    const { client, ends, left: clientGone } = started;
    source.send(event("abc"));
    source.send(event("", "stop"));
    source.send(done);
    await soon();
    expect(client.text).toBe(event("abc") + event("", "stop") + done);
    expect(client.ended).toBe(true);
    source.end();
    clientGone.cancel();
    expect(ends).toEqual([{ observed: observedAbc, error: undefined }]);
    expect(source.ends).toEqual([false]);
    expect(started.aborts).toBe(0);
    expect(source.cancelled).toBe(false);
  });

  test.each([
    ["the mark", event("abc", "stop") + done],
    ["an error", `${event("abc")}data: {"error":{"message":"boom"}}\n\n`],
  ])("waits until the end is recorded, even if recording fails (%s)", async (_name, sent) => {
    for (const fails of [false, true, "at once"]) {
      const source = new Source();
      const onRecord = Promise.withResolvers<void>();
      const onEnd = () => {
        if (fails === "at once") throw new Error("a fault of ours");
        return onRecord.promise;
      };
      const { client, recorded } = start(source.dispatched, { onEnd });
      source.send(event("first"));
      source.send(sent);
      expect(client.text).toBe(event("first"));
      expect(recorded.join("")).toContain("abc");
      expect(client.ended).toBe(false);
      await settled();
      expect(client.ended).toBe(fails === "at once");
      if (fails === true) onRecord.reject(new Error("disk full"));
      else onRecord.resolve();
      await settled();
      expect(client.writes).toHaveLength(2);
      expect(client.text).toContain("abc");
      expect(client.text).toMatch(/(\[DONE\]|"upstream_error"\}\})\n\n$/);
      expect(client.ended).toBe(true);
    }
  });

  test("sends one error event if the engine breaks off, and rests the engine", async () => {
    const source = new Source();
    const { client, ends, left: clientGone } = start(source.dispatched);
    source.send(event("abc"));
    source.fail(new Error("ECONNRESET at 10.0.0.1"));
    clientGone.cancel();
    await soon();
    expect(client.text).toContain('"upstream_error"');
    expect(client.text).not.toContain("10.0.0.1");
    expect(client.text).not.toContain("[DONE]");
    expect(client.ended).toBe(true);
    expect(ends).toEqual([{ observed: observedAbc, error: expect.objectContaining({ code: "upstream_error" }) }]);
    expect(source.ends).toEqual([true]);
  });

  const second = event("de").replace('"index":0', '"index":1');
  test.each([
    ["the only choice is whole", event("abc", "stop"), true],
    ["one of two choices is not over is broken off", event("abc", "stop") + second, false],
  ])("a body that ends where %s", async (_, sent, isWhole) => {
    const source = new Source();
    const { client, ends } = start(source.dispatched, { request: requestFor({ n: 2 }) });
    source.send(sent);
    source.end();
    await soon();
    expect(client.text.endsWith(done)).toBe(isWhole);
    expect(ends[0]?.error).toEqual(isWhole ? undefined : expect.objectContaining({ code: "upstream_error" }));
  });

  test("reports an engine that was silent for too long with an error code of its own", async () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched);
    source.fail(new GatewayError("upstream_timeout", "It stopped sending."));
    await soon();
    expect(client.text).toContain('"upstream_timeout"');
    expect(ends[0]?.error).toMatchObject({ code: "upstream_timeout" });
    expect(source.ends).toEqual([true]);
  });

  test("reports a connection that closes early as a fault, unless a choice gave its finish reason", async () => {
    const cut = new Source();
    const broken = start(cut.dispatched);
    cut.send(event("abc"));
    cut.end();
    await soon();
    expect(broken.client.text).toContain("closed the connection");
    const whole = new Source();
    const well = start(whole.dispatched);
    whole.send(event("abc", "stop").trimEnd());
    whole.end();
    await soon();
    expect(well.client.text).toBe(event("abc", "stop") + done);
    expect(well.ends[0]?.error).toBeUndefined();
  });

  test("delivers events that arrived together with a fault before the fault", async () => {
    const source = new Source();
    const { client, ends, recorded } = start(source.dispatched);
    source.send(`${event("abc")}data: {"error":{"message":"boom"}}\n\n`);
    await soon();
    expect(client.text).toStartWith(event("abc"));
    expect(client.text).toContain('"boom"');
    expect(recorded).toEqual([event("abc")]);
    expect(ends[0]?.observed.deliveredBytes).toBe(3);
    expect(source.cancelled).toBe(true);
  });

  test("refuses an event above 8 MiB", async () => {
    const source = new Source();
    const { client } = start(source.dispatched);
    source.send(`${event("abc")}data: `);
    const mebibyte = "x".repeat(1024 * 1024);
    for (let i = 0; i < 10; i++) source.send(mebibyte);
    await soon();
    expect(client.text).toStartWith(event("abc"));
    expect(client.text).toContain('"upstream_error"');
    expect(source.cancelled).toBe(true);
  });

  test("neither delivers nor counts what arrived after [DONE]", async () => {
    const source = new Source();
    const { client, ends } = start(source.dispatched);
    source.send(`${event("abc", "stop")}${done}${event("more")}data: {"error":{}}\n\n`);
    source.send(event("more"));
    source.fail(new Error("reset"));
    await soon();
    expect(client.text).toBe(event("abc", "stop") + done);
    expect(ends).toEqual([{ observed: observedAbc, error: undefined }]);
  });

  test("sends an error event with the code of a source that fails late", async () => {
    const failure = new GatewayError("service_unavailable", "busy");
    const { client, ends } = start(Promise.reject(failure));
    await settled();
    expect(client.text).toContain('"service_unavailable"');
    expect(ends).toEqual([
      { observed: { reported: undefined, deliveredBytes: 0, deliveredPieces: 0 }, error: failure },
    ]);
  });

  test("sends requested usage once, after all chunks", async () => {
    const source = new Source();
    const request = requestFor({ stream_options: { include_usage: true } });
    const { client, ends } = start(source.dispatched, { request });
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    source.send(event("abc", "stop"));
    source.send(`data: ${JSON.stringify({ id: "c", choices: [], usage })}\n\n`);
    source.send(done);
    await soon();
    const chunks = client.text.split("\n\n").slice(0, -2);
    expect(chunks.map((chunk) => JSON.parse(chunk.slice(6)).usage)).toEqual([null, usage]);
    expect(ends[0]?.observed.reported).toEqual({ promptTokens: 1, completionTokens: 2, estimated: false });
  });
});

describe("a stream without content", () => {
  /** Returns what the client got in total after the engine sent `piece` up to `times` times. */
  async function ending(piece: string, times: number): Promise<{ source: Source; text: string }> {
    const source = new Source();
    const { client, left: clientGone } = start(source.dispatched);
    source.send(event("a"));
    for (let n = 0; n < times && !source.cancelled; n++) source.send(piece);
    await settled();
    clientGone.cancel();
    return { source, text: client.text };
  }

  test.each([
    ["comments", ":\n\n".repeat(4_000)],
    ["blank lines", "\n".repeat(12_000)],
    ["other fields", "id: 1\n".repeat(2_000)],
    ["events without a choice", 'data: {"choices":[]}\n\n'.repeat(500)],
  ])("ends a stream that brings nothing but %s with an error event, and stops its engine", async (_what, piece) => {
    const { source, text } = await ending(piece, 100);
    expect(text).toEndWith(
      'data: {"error":{"message":"The model server sends much that is no part of an answer.","type":"t","code":"upstream_error"}}\n\n',
    );
    expect([source.cancelled, source.ends]).toEqual([true, [true]]);
  });

  test("accepts as many empty bytes as one long event has, and does not count keep-alives as a flood", () => {
    const long = event("x".repeat(2_000_000));
    const source = new Source();
    const { client, left: clientGone } = start(source.dispatched);
    for (let at = 0; at < long.length; at += 10_000) source.send(long.slice(at, at + 10_000));
    for (let n = 0; n < 1_000; n++) source.send(`${comment}${event("a")}`);
    expect(client.text).not.toContain("error");
    expect(client.text.length).toBeGreaterThan(2_000_000);
    clientGone.cancel();
  });

  test("ends a stream with the error that cut its client off", async () => {
    const source = new Source();
    const { ends, left: clientGone } = start(source.dispatched);
    source.send(event("a"));
    const full = new NoRoomError("rate_limit_exceeded", "The key holds too much.");
    clientGone.cancel(full);
    expect(ends).toMatchObject([{ error: full }]);
    expect([source.cancelled, source.ends]).toEqual([true, [false]]);
  });

  test("releases the bytes of a partly read answer when the server shuts down", async () => {
    const ledger = new BufferedBytes(1_000_000);
    const source = new Source("application/json");
    const { client, stopping } = start(source.dispatched, { memoryAccount: ledger.visitors });
    source.send('{"choices":[');
    expect(ledger.byKind.answers).toBe(12);
    stopping.begin();
    await settled();
    expect([client.ended, source.cancelled, ledger.total]).toEqual([true, true, 0]);
  });

  test("ends a stream whose event exceeds the key's memory share without blaming the engine", async () => {
    const ledger = new BufferedBytes(600_000);
    const source = new Source();
    const { client } = start(source.dispatched, { memoryAccount: ledger.visitors });
    for (let n = 0; n < 30 && !source.cancelled; n++) source.send(n === 0 ? "data: " : "x".repeat(10_000));
    await settled();
    expect(client.text).toContain('"code":"rate_limit_exceeded"');
    expect([source.cancelled, source.ends, ledger.total]).toEqual([true, [false], 0]);
  });
});
