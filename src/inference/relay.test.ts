// The relay's conduct: back-pressure, heartbeats, leaving at every moment, and that each end is told exactly once.

import { describe, expect, test } from "bun:test";
import type { Engine } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";
import { scanObject } from "../domain/json-text.ts";
import type { DecodedRequest, Dispatched } from "./dispatch.ts";
import { relayStream } from "./relay.ts";
import { Stopping } from "./stopping.ts";
import type { StreamObservation } from "./stream-chunks.ts";

const encoder = new TextEncoder();
const text = '{"model":"m","messages":[],"stream":true}';
const request: DecodedRequest = {
  operation: "chat",
  text,
  members: scanObject(text),
  body: JSON.parse(text),
  model: "m",
  stream: true,
  width: 1,
};

const event = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: finish }] })}\n\n`;
const done = "data: [DONE]\n\n";

/** An engine's response whose bytes the test sends one by one. */
class Source {
  reads = 0;
  cancelled = false;
  /** What `done` was called with, in order. */
  readonly ends: boolean[] = [];
  readonly dispatched: Dispatched;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(idleTimeoutMs = 60_000) {
    const engine: Engine = {
      name: "e",
      idleTimeoutMs,
      redact: (said) => said,
      send: () => Promise.reject(new Error("not used")),
      models: async () => [],
    };
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          this.reads++;
        },
        cancel: () => {
          this.cancelled = true;
        },
      },
      { highWaterMark: 0 },
    );
    this.dispatched = {
      response: { status: 200, headers: new Headers(), body },
      deployment: { engine, model: "m", weight: 1 },
      firstByte: () => {},
      done: (failed) => void this.ends.push(failed),
    };
  }

  send(data: string): void {
    this.#controller?.enqueue(encoder.encode(data));
  }

  end(): void {
    this.#controller?.close();
  }

  fail(error: Error): void {
    this.#controller?.error(error);
  }
}

interface Started {
  reader: ReadableStreamDefaultReader<Uint8Array>;
  client: AbortController;
  ends: { observed: StreamObservation; error: unknown }[];
  aborts: number;
  read(): Promise<string>;
  rest(): Promise<string>;
}

function start(source: Promise<Dispatched>, heartbeatMs = 60_000, signal?: AbortSignal): Started {
  const client = new AbortController();
  const started: Started = {
    client,
    ends: [],
    aborts: 0,
    reader: undefined as never,
    async read() {
      return new TextDecoder().decode((await this.reader.read()).value);
    },
    async rest() {
      let all = "";
      for (let part = await this.reader.read(); !part.done; part = await this.reader.read()) {
        all += new TextDecoder().decode(part.value);
      }
      return all;
    },
  };
  source.catch(() => {});
  const stream = relayStream({
    request,
    source,
    completion: { id: "chatcmpl-x", created: 1, ownId: false },
    heartbeatMs,
    signal: signal ?? client.signal,
    stopping: new Stopping(),
    renderError: (error) => JSON.stringify({ error: { message: error.message, type: "t", code: error.code } }),
    onPiece: () => {},
    record: undefined,
    onEnd: (observed, error) => void started.ends.push({ observed: { ...observed }, error }),
    abort: () => {
      started.aborts++;
    },
  });
  started.reader = stream.getReader();
  return started;
}

const soon = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("back-pressure", () => {
  test("while the client does not read, nothing is read from the engine", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    await soon();
    expect(source.reads).toBe(0);
    source.send(event("a"));
    expect(await relay.read()).toContain('"a"');
    source.send(event("b"));
    await soon();
    await soon();
    expect(source.reads).toBeLessThanOrEqual(1);
    expect(await relay.read()).toContain('"b"');
    await relay.reader.cancel();
  });
});

describe("heartbeats", () => {
  test("a comment goes out for each silent stretch, and never in the middle of an event", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched), 15);
    source.send(event("a").slice(0, 30));
    expect(await relay.read()).toBe(": keep-alive\n\n");
    expect(await relay.read()).toBe(": keep-alive\n\n");
    source.send(event("a").slice(30));
    expect(await relay.read()).toBe(event("a"));
    await relay.reader.cancel();
  });

  test("they also go out while the engine has not answered at all", async () => {
    const source = new Source();
    let answer = (_: Dispatched) => {};
    const relay = start(new Promise((resolve) => (answer = resolve)), 15);
    expect(await relay.read()).toBe(": keep-alive\n\n");
    answer(source.dispatched);
    source.send(event("a", "stop") + done);
    expect((await relay.rest()).replaceAll(": keep-alive\n\n", "")).toBe(event("a", "stop") + done);
  });

  test("an engine that sends only comments is not silent", async () => {
    const source = new Source(60);
    const relay = start(Promise.resolve(source.dispatched), 20);
    const all = relay.rest();
    for (let i = 0; i < 8; i++) {
      await Bun.sleep(25);
      source.send(": thinking\n\n");
    }
    source.send(event("a", "stop") + done);
    expect(await all).toEndWith(event("a", "stop") + done);
    expect(relay.ends[0]?.error).toBeUndefined();
  });

  test("an engine that sends nothing for its idle time is a fault, told once, and stopped", async () => {
    const source = new Source(60);
    const relay = start(Promise.resolve(source.dispatched), 20);
    source.send(event("a"));
    const all = await relay.rest();
    expect(all).toContain('"upstream_timeout"');
    expect(all).not.toContain("[DONE]");
    expect(relay.ends).toHaveLength(1);
    expect(relay.ends[0]?.error).toMatchObject({ code: "upstream_timeout" });
    expect(relay.aborts).toBe(1);
    expect(source.ends).toEqual([true]);
  });
});

describe("ends", () => {
  test("a whole stream ends without an error, once, and the engine is done well", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    source.send(event("abc"));
    source.send(event("", "stop"));
    source.send(done);
    expect(await relay.rest()).toEndWith(done);
    source.end();
    await soon();
    relay.client.abort();
    expect(relay.ends).toEqual([
      { observed: { reported: undefined, deliveredBytes: 3, deliveredPieces: 1 }, error: undefined },
    ]);
    expect(source.ends).toEqual([false]);
    expect(relay.aborts).toBe(0);
  });

  test("an engine that breaks off is an error event, once, and the engine is put to rest", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    source.send(event("abc"));
    expect(await relay.read()).toContain("abc");
    source.fail(new Error("ECONNRESET at 10.0.0.1"));
    const all = await relay.rest();
    expect(all).toContain('"upstream_error"');
    expect(all).not.toContain("10.0.0.1");
    expect(relay.ends).toHaveLength(1);
    expect(relay.ends[0]?.observed.deliveredBytes).toBe(3);
    expect(source.ends).toEqual([true]);
  });

  test("what arrived together with a fault is delivered before it", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    source.send(`${event("abc")}data: {"error":{"message":"boom"}}\n\n`);
    const all = await relay.rest();
    expect(all).toStartWith(event("abc"));
    expect(all).toContain('"boom"');
    expect(relay.ends[0]?.observed.deliveredBytes).toBe(3);
  });

  test("what arrived behind [DONE] is not delivered, and changes no count", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    source.send(`${event("abc", "stop")}${done}${event("more")}data: {"error":{}}\n\n`);
    expect(await relay.rest()).toBe(event("abc", "stop") + done);
    expect(relay.ends).toEqual([
      { observed: { reported: undefined, deliveredBytes: 3, deliveredPieces: 1 }, error: undefined },
    ]);
  });

  test("a source that fails late is an error event with its own code", async () => {
    const failure = new GatewayError("service_unavailable", "busy");
    const relay = start(Promise.reject(failure));
    const all = await relay.rest();
    expect(all).toContain('"service_unavailable"');
    expect(relay.ends).toEqual([
      { observed: { reported: undefined, deliveredBytes: 0, deliveredPieces: 0 }, error: failure },
    ]);
  });
});

describe("a client that leaves", () => {
  const left = { error: expect.objectContaining({ name: "AbortError" }) };

  test.each(["cancel", "abort"] as const)("in the middle: the engine is stopped and not blamed (%s)", async (how) => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    source.send(event("abc"));
    await relay.read();
    if (how === "cancel") await relay.reader.cancel();
    else relay.client.abort();
    await soon();
    expect(relay.ends).toHaveLength(1);
    expect(relay.ends[0]).toMatchObject({ ...left, observed: { deliveredBytes: 3 } } as never);
    expect(relay.aborts).toBe(1);
    expect(source.ends).toEqual([false]);
  });

  test("before it read anything, with the engine's answer there: the engine's part ends all the same", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    relay.client.abort();
    await soon();
    await soon();
    expect(relay.ends).toHaveLength(1);
    expect(relay.aborts).toBe(1);
    // Otherwise the router believes for ever that this engine is busy with it.
    expect(source.ends).toEqual([false]);
  });

  test("before the relay even began: that is noticed all the same", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched), 60_000, AbortSignal.abort());
    await soon();
    await soon();
    expect(relay.ends).toHaveLength(1);
    expect(relay.aborts).toBe(1);
    expect(source.ends).toEqual([false]);
  });

  test("before the engine answered: what comes late is let go", async () => {
    const source = new Source();
    let answer = (_: Dispatched) => {};
    const relay = start(new Promise((resolve) => (answer = resolve)), 15);
    await relay.read();
    await relay.reader.cancel();
    expect(relay.ends).toHaveLength(1);
    answer(source.dispatched);
    await soon();
    await soon();
    expect(source.ends).toEqual([false]);
    expect(source.cancelled).toBe(true);
  });

  test("twice, by both ways: told once", async () => {
    const source = new Source();
    const relay = start(Promise.resolve(source.dispatched));
    source.send(event("a"));
    await relay.read();
    relay.client.abort();
    await relay.reader.cancel();
    await soon();
    expect(relay.ends).toHaveLength(1);
    expect(relay.aborts).toBe(1);
    expect(source.ends).toEqual([false]);
  });
});
