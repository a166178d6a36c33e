// Tests when a client's stream begins, and which engine's answer it carries.
import { describe, expect, test } from "bun:test";
import { Client, comment, done, event, Source, settled, start } from "../../../tests/support/relay.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { Deferred } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Dispatched } from "../routing/attempt.ts";

/** Starts a relay without a client. The client connects when the relay requests it; with `later`, in a later tick. */
function startWithout(first: Dispatched, others: Dispatched[] = [], later = false, heartbeatMs = 10_000) {
  const client = new Client();
  const world = {
    client,
    begun: 0,
    proven: [] as Dispatched[],
    unbegun: [] as unknown[],
    left: [] as boolean[],
    attach() {},
  };
  const started = start(
    first,
    {
      heartbeatMs,
      begins(begin: (client: ClientStream) => void) {
        world.begun++;
        world.attach = () => begin(client);
        if (!later) world.attach();
      },
      unbegun: (error) => void world.unbegun.push(error),
      answers: (dispatched) => void world.proven.push(dispatched),
      another(_dispatched, error, isCut) {
        world.left.push(isCut);
        const next = others.shift();
        return next ? Promise.resolve(next) : Promise.reject(error);
      },
    },
    false,
  );
  return Object.assign(world, { ends: started.ends, cancellation: started.left });
}

const failing = `data: ${JSON.stringify({ error: { message: "out of order" } })}\n\n`;

test("starts the client's answer with the first event and not before", async () => {
  const source = new Source();
  const world = startWithout(source.dispatched);
  source.send(": hello\n\n");
  source.send(event("a").slice(0, 20));
  expect([world.begun, world.proven]).toEqual([0, []]);
  source.send(event("a").slice(20));
  expect([world.begun, world.proven, world.client.text]).toEqual([1, [source.dispatched], event("a")]);
  source.send(event("b", "stop") + done);
  await settled();
  expect([world.begun, world.client.text]).toEqual([1, event("a") + event("b", "stop") + done]);
});

test("pauses the engine until the client is attached, then delivers everything in order", async () => {
  const source = new Source();
  const world = startWithout(source.dispatched, [], true);
  source.send(event("a"));
  expect(source.paused).toBe(true);
  source.send(event("b"));
  world.attach();
  expect([world.client.text, source.paused]).toEqual([event("a") + event("b"), false]);
  source.send(event("", "stop") + done);
  await settled();
  expect([world.client.text, world.client.ended]).toEqual([event("a") + event("b") + event("", "stop") + done, true]);
});

test("delivers the end to a client that attaches after the end was recorded", async () => {
  const source = new Source();
  const world = startWithout(source.dispatched, [], true);
  source.send(event("a", "stop") + done);
  await settled();
  world.attach();
  expect([world.client.text, world.client.ended]).toEqual([event("a", "stop") + done, true]);
});

describe("an engine that sends no answer", () => {
  const ways: Readonly<Record<string, (source: Source) => void>> = {
    "an error as its first event": (source) => source.send(failing),
    "the end alone": (source) => source.send(done),
    "no event": (source) => source.end(),
    "a reset": (source) => source.fail(new Error("reset")),
    "silence for too long": (source) => source.fail(new GatewayError("upstream_timeout", "late")),
    "an event that is no JSON": (source) => source.send("data: <html>\n\n"),
  };
  const names = Object.keys(ways);

  test.each(names)("tries the next engine, whose answer alone the client sees: %s", async (name) => {
    const [bad, good] = [new Source(), new Source()];
    const world = startWithout(bad.dispatched, [good.dispatched]);
    ways[name]?.(bad);
    await settled();
    expect([bad.cancelled, world.begun, world.left]).toEqual([
      true,
      0,
      [["no event", "a reset", "silence for too long"].includes(name)],
    ]);
    // The rest of the bad engine's answer must reach no client.
    bad.send(event("late"));
    good.send(event("a") + event("", "stop") + done);
    await settled();
    expect(world.client.text).toBe(event("a") + event("", "stop") + done);
    expect([world.proven, world.ends.map(({ error }) => error)]).toEqual([[good.dispatched], [undefined]]);
  });

  test.each(names)("sends an error and no stream if no other engine is left: %s", async (name) => {
    const bad = new Source();
    const world = startWithout(bad.dispatched);
    ways[name]?.(bad);
    await settled();
    expect([world.begun, world.proven, world.client.text, world.ends.length]).toEqual([0, [], "", 1]);
    expect(world.unbegun).toEqual([expect.any(GatewayError)]);
  });

  test("tries the next engine if the client has received only comments", async () => {
    const [bad, good] = [new Source(), new Source()];
    const world = startWithout(bad.dispatched, [good.dispatched], false, 10);
    await Bun.sleep(15);
    expect([world.begun, world.client.writes[0]]).toEqual([1, comment]);
    bad.send(failing);
    await settled();
    good.send(event("a"));
    expect(world.client.text.replaceAll(comment, "")).toBe(event("a"));
    world.cancellation.cancel();
  });

  test("sends an error event if the client has received only comments and no other engine is left", async () => {
    const bad = new Source();
    const world = startWithout(bad.dispatched, [], false, 10);
    await Bun.sleep(15);
    bad.send(failing);
    await settled();
    expect(world.client.text).toContain("out of order");
    expect([world.client.ended, world.unbegun]).toEqual([true, []]);
  });
});

test("tries no other engine once the client has an event, or if the request itself is at fault", async () => {
  const bad = new Source();
  const begun = startWithout(bad.dispatched, [new Source().dispatched]);
  bad.send(event("a"));
  bad.send(failing);
  await settled();
  expect([begun.left, begun.client.ended]).toEqual([[], true]);
  const other = new Source();
  const refused = startWithout(other.dispatched, [new Source().dispatched]);
  other.send(`data: ${JSON.stringify({ error: { message: "too long", code: "context_length_exceeded" } })}\n\n`);
  await settled();
  expect([refused.left, refused.begun]).toEqual([[], 0]);
  expect(refused.unbegun).toMatchObject([{ code: "invalid_request" }]);
});

test("tries no other engine if the client leaves before the first event", async () => {
  const source = new Source();
  const world = startWithout(source.dispatched, [new Source().dispatched]);
  world.cancellation.cancel();
  await settled();
  expect([source.cancelled, source.ends, world.left, world.begun]).toEqual([true, [false], [], 0]);
  expect(world.unbegun).toMatchObject([{ name: "AbortError" }]);
});

test("ends the request if the gateway fails while it starts the client's stream", async () => {
  const fault = new Error("a fault of ours");
  const source = new Source();
  const unbegun: unknown[] = [];
  const failing = () => {
    throw fault;
  };
  start(source.dispatched, { begins: failing, unbegun: (error) => void unbegun.push(error) }, false);
  source.send(event("a"));
  await settled();
  expect([unbegun, source.cancelled]).toEqual([[fault], true]);
});

test("releases an engine that answers after its client has left", async () => {
  const [bad, late] = [new Source(), new Source()];
  const next = new Deferred<Dispatched>();
  const started = start(bad.dispatched, { another: () => next }, false);
  bad.send(failing);
  started.left.cancel();
  next.resolve(late.dispatched);
  await settled();
  expect([late.cancelled, late.ends]).toEqual([true, [false]]);
});

test("tries the next engine if the stream reports an error under a JSON content type", async () => {
  const [bad, good] = [new Source("application/json"), new Source()];
  const next = new Deferred<Dispatched>();
  const started = start(bad.dispatched, { another: () => next });
  bad.send(failing);
  bad.end();
  await settled();
  next.resolve(good.dispatched);
  good.send(event("a", "stop") + done);
  await settled();
  expect(started.client.text).toBe(event("a", "stop") + done);
  expect(started.ends.map(({ error }) => error)).toEqual([undefined]);
});
