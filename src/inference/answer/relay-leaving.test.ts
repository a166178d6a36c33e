// Tests clients that leave and servers that stop at any moment of a stream.
import { describe, expect, test } from "bun:test";
import { until } from "../../../tests/support/headrace.ts";
import { done, event, Source, settled, soon, start } from "../../../tests/support/relay.ts";
import { type CancelListener, Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Dispatched } from "../routing/attempt.ts";
import { type Stoppable, Stopping } from "../stopping.ts";

test("removes an ended stream from all long-lived listeners, however it ended", async () => {
  class CountedStopping extends Stopping {
    open = 0;
    override add(one: Stoppable): void {
      this.open++;
      super.add(one);
    }
    override remove(one: Stoppable): void {
      this.open--;
      super.remove(one);
    }
  }
  class CountedCancellation extends Cancellation {
    open = 0;
    override onCancel(listener: CancelListener): void {
      this.open++;
      super.onCancel(listener);
    }
    override off(listener: CancelListener): void {
      this.open--;
      super.off(listener);
    }
  }
  for (const how of ["done", "fail", "leave"]) {
    const source = new Source();
    const stopping = new CountedStopping();
    const clientGone = new CountedCancellation();
    start(source.dispatched, { stopping, clientGone: clientGone });
    expect([stopping.open, clientGone.open]).toEqual([1, 1]);
    if (how === "done") source.send(event("a") + done);
    else if (how === "fail") source.fail(new Error("reset"));
    else clientGone.cancel();
    source.end();
    await settled();
    expect([stopping.open, clientGone.open]).toEqual([0, 0]);
  }
});

describe("a client that disconnects", () => {
  const leaving = expect.objectContaining({ name: "AbortError" });

  test("stops the engine without blaming it if the client leaves in mid-stream, and writes nothing more", async () => {
    const source = new Source();
    const started = start(source.dispatched);
    source.send(event("abc"));
    started.left.cancel();
    expect(source.cancelled).toBe(true);
    expect(started.ends).toEqual([{ observed: expect.objectContaining({ deliveredBytes: 3 }), error: leaving }]);
    expect(started.aborts).toBe(1);
    expect(source.ends).toEqual([false]);
    await soon();
    expect(started.client.text).toBe(event("abc"));
  });

  const reported = { prompt_tokens: 20, completion_tokens: 9_000, total_tokens: 9_020 };
  const usage = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: reported })}\n\n`;

  test("bills reported usage if the client leaves between the end of the answer and its usage", async () => {
    const source = new Source();
    const started = start(source.dispatched);
    started.client.behind = true;
    source.send(event("abc") + event("", "stop"));
    expect(source.paused).toBe(true);
    started.left.cancel();
    expect(started.ends).toEqual([]);
    expect(source.paused).toBe(false);
    source.send(usage + done);
    await soon();
    const reported = expect.objectContaining({ promptTokens: 20, completionTokens: 9_000 });
    expect(started.ends).toEqual([{ observed: expect.objectContaining({ reported }), error: undefined }]);
    expect(source.ends).toEqual([false]);
  });

  test("stops the engine one second after the answer if the client left and no usage follows", async () => {
    const source = new Source();
    const started = start(source.dispatched);
    source.send(event("abc") + event("", "stop"));
    started.left.cancel();
    await until(() => started.ends.length > 0, "the end", 1_500);
    expect(started.ends).toEqual([{ observed: expect.objectContaining({ deliveredBytes: 3 }), error: undefined }]);
    await until(() => source.cancelled, "the engine is let go", 1_500);
  });

  test("ends at once if the client is cut off between the end of the answer and its usage", () => {
    const source = new Source();
    const started = start(source.dispatched);
    source.send(event("abc") + event("", "stop"));
    started.left.cancel(new GatewayError("rate_limit_exceeded", "No room."));
    expect(started.ends).toHaveLength(1);
    expect(source.cancelled).toBe(true);
  });

  test("reports the end once if the client leaves during a write", () => {
    const source = new Source();
    const clientGone = new Cancellation();
    const started = start(source.dispatched, { clientGone: clientGone });
    const { client } = started;
    const write = client.write.bind(client);
    client.write = (bytes) => {
      write(bytes);
      clientGone.cancel();
      return false;
    };
    source.send(event("abc") + event("d"));
    expect(started.ends).toHaveLength(1);
    expect(source.cancelled).toBe(true);
    expect(source.paused).toBe(false);
  });

  test("ends the engine's answer if the client leaves before reading anything", async () => {
    const source = new Source();
    const started = start(Promise.resolve(source.dispatched));
    started.left.cancel();
    await soon();
    expect(started.ends).toHaveLength(1);
    expect(started.aborts).toBe(1);
    // Without this end, the router would count the request as running on the engine forever.
    expect(source.ends).toEqual([false]);
    expect(source.cancelled).toBe(true);
  });

  test("notices a client that left before the relay began", () => {
    const source = new Source();
    const clientGone = new Cancellation();
    clientGone.cancel();
    const ends: unknown[] = [];
    start(source.dispatched, { clientGone: clientGone, onEnd: async (_, error) => void ends.push(error) });
    expect(ends).toEqual([leaving]);
    expect(source.ends).toEqual([false]);
    expect(source.cancelled).toBe(true);
    expect(source.flowing).toBe(false);
  });

  test("stops the engine and drops its late answer if the client leaves before the answer", async () => {
    const source = new Source();
    const { promise, resolve } = Promise.withResolvers<Dispatched>();
    const started = start(promise);
    started.left.cancel();
    expect(started.aborts).toBe(1);
    expect(started.ends).toHaveLength(1);
    resolve(source.dispatched);
    await soon();
    expect(source.ends).toEqual([false]);
    expect(source.cancelled).toBe(true);
    expect(started.client.text).toBe("");
  });

  test("reports the end once if the client leaves before the engine fails", async () => {
    const { promise, reject } = Promise.withResolvers<Dispatched>();
    const started = start(promise);
    started.left.cancel();
    reject(new GatewayError("upstream_error", "late"));
    await soon();
    expect(started.ends).toHaveLength(1);
    expect(started.client.text).toBe("");
  });

  test("stops the engine if the client leaves while a whole answer is read", async () => {
    const source = new Source("application/json");
    const started = start(source.dispatched);
    source.send('{"choices":');
    started.left.cancel();
    await settled();
    expect(source.cancelled).toBe(true);
    expect(started.ends).toHaveLength(1);
    expect(source.ends).toEqual([false]);
  });

  test("counts a client as served if it leaves while the end is being recorded", async () => {
    const source = new Source();
    const started = start(source.dispatched);
    source.send(event("abc", "stop") + done);
    started.left.cancel();
    await soon();
    expect(started.ends).toEqual([{ observed: expect.anything(), error: undefined }]);
    expect(started.aborts).toBe(0);
  });
});

describe("a server that shuts down", () => {
  test("writes one error event and stops the engine if the server shuts down in mid-stream", async () => {
    const source = new Source();
    const started = start(source.dispatched);
    source.send(event("abc"));
    started.stopping.begin();
    started.left.cancel();
    await soon();
    expect(started.client.text).toMatch(/"service_unavailable"\}\}\n\n$/);
    expect(started.client.ended).toBe(true);
    expect(started.ends).toHaveLength(1);
    expect(source.cancelled).toBe(true);
  });

  test("sends an error if the server shuts down before the engine answered or the relay began", async () => {
    const late = start(Promise.withResolvers<Dispatched>().promise);
    late.stopping.begin();
    await soon();
    expect(late.aborts).toBe(1);
    expect(late.client.text).toContain('"service_unavailable"');
    const source = new Source();
    const stopping = new Stopping();
    stopping.begin();
    const { client } = start(source.dispatched, { stopping, onEnd: async () => {} });
    await soon();
    expect(client.text).toContain('"service_unavailable"');
    expect(source.ends).toEqual([false]);
    expect(source.cancelled).toBe(true);
  });

  test("writes nothing to a stream that ended before the server shut down", async () => {
    const source = new Source();
    const started = start(source.dispatched);
    source.send(event("abc", "stop") + done);
    await soon();
    started.stopping.begin();
    await soon();
    expect(started.client.text).toBe(event("abc", "stop") + done);
  });
});
