// Followers of a background response receive each event once and in order, however slow the client and the store are.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { shiftedClock } from "../../../tests/support/manual-clock.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import { stored } from "../../../tests/support/stored-responses.ts";
import { UnsteadyRunStore } from "../../../tests/support/unsteady-run-store.ts";
import { AccountMemory, BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { encodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { InferenceCall } from "../../inference/call.ts";
import type { MessageRequest } from "../../inference/message-request.ts";
import { Stopping } from "../../inference/stopping.ts";
import { BackgroundRun } from "./background-run.ts";
import { EventSubscriber } from "./event-subscriber.ts";
import { SharedPolls } from "./shared-polls.ts";
import { StoreTurns } from "./store-turns.ts";

const clock = systemClock;

/** Returns a generator of numbers from 0 to below 1, which are the same for the same seed. */
function drawing(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function messageFor(): MessageRequest & { finished: number } {
  return {
    ...{ requestId: "req_1", line: {}, trace: undefined, isOnLedger: false, finished: 0 },
    by: () => new BufferedBytes(1).visitors,
    hold: () => undefined,
    durationNow: () => 0,
    finish() {
      this.finished++;
    },
    clientLeft() {},
    leave() {},
  };
}

interface Made {
  run: BackgroundRun;
  store: UnsteadyRunStore;
  looks: SharedPolls;
  held: BufferedBytes;
  message: ReturnType<typeof messageFor>;
}

function make(store: UnsteadyRunStore, insert: () => Promise<void>, on: Clock = clock): Made {
  const held = new BufferedBytes(1_000_000_000);
  const message = messageFor();
  const first = stored("resp_1", { status: "queued", background: true, response: { id: "resp_1", output: [] } });
  const run = new BackgroundRun({
    tagHeader: null,
    priority: undefined,
    ...{ message, principal: principalFor(), memoryAccount: held.memoryAccount(new AccountMemory()) },
    ...{ request: decodedRequest({ input: "Hi" }, "response"), stored: first, responses: { insert } },
    ...{ background: store, turns: new StoreTurns(on), clock: on, onNotStored() {} },
  });
  return { run, store, looks: new SharedPolls(store, on), held, message };
}

function numberOf(event: string | undefined): number | undefined {
  return event === undefined ? undefined : (JSON.parse(event) as { sequence_number: number }).sequence_number;
}

function isLast(event: string): boolean {
  return /^\{"type":"response\.(?:completed|incomplete|failed)"/.test(event);
}

const inStream = (type: string, members: object) =>
  encodeByteText(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 0, ...members })}\n\n`);
const completed = inStream("response.completed", { response: { status: "completed", output: [] } });

/** The model's output: pieces of text, each after a pause, and the end. */
interface Answer {
  silentMs: number;
  pieces: readonly { afterMs: number; size: number }[];
  /** The case `ended elsewhere`: another process took this one for dead. */
  ends: "completed" | "broken" | "cancelled" | "cancelled elsewhere" | "ended elsewhere";
}

/** Acts as the relay. Never rejects. */
async function answered({ run, store }: Made, answer: Answer, call: InferenceCall<void>): Promise<void> {
  const { silentMs, pieces, ends } = answer;
  let drained: (() => void) | undefined;
  let client: ClientStream | undefined;
  call.answer((given) => {
    client = given;
  });
  if (!client) return;
  client.onDrain = () => drained?.();
  await Bun.sleep(silentMs);
  for (const [nth, { afterMs, size }] of pieces.entries()) {
    await Bun.sleep(afterMs);
    if (call.clientGone.cancelled) return;
    const keepsUp = client.write(inStream("response.output_text.delta", { nth, delta: "ü".repeat(size) }));
    if (keepsUp) continue;
    await new Promise<void>((resolve) => {
      drained = resolve;
      call.clientGone.onCancel(resolve);
    });
  }
  if (call.clientGone.cancelled) return;
  if (ends === "completed") client.end(completed);
  else if (ends === "broken") client.end("");
  else if (ends === "cancelled") run.cancel();
  else if (ends === "cancelled elsewhere") store.isCancelled = true;
  else store.endElsewhere();
}

/** A client that sometimes falls behind, or disconnects and returns. */
interface Reader {
  afterMs: number;
  /** Number of events that the client claims to have, if there are that many. */
  has: number;
  isElsewhere: boolean;
  /** Share of writes after which the client falls behind. */
  slow: number;
  /** Number of events after which the client disconnects and then continues. */
  leavesAfter: number;
}

/** Data of the events that the client received, and the number of the event before them. */
async function read(made: Made, reader: Reader, seed: number): Promise<{ after: number; got: string[] }> {
  const draw = drawing(seed);
  const got: string[] = [];
  await Bun.sleep(reader.afterMs);
  const after = Math.min(reader.has, made.store.all.length) - 1;
  for (let isOver = false; !isOver; ) {
    const clientGone = new Cancellation();
    let isBehind = false;
    let leavesAfter = reader.leavesAfter;
    const client: ClientStream = {
      onDrain: undefined,
      write(bytes) {
        if (clientGone.cancelled) return true;
        for (const event of Buffer.from(bytes, "latin1").toString().split("\n\n")) {
          const data = /^data: (.*)$/m.exec(event)?.[1];
          if (data === undefined) continue;
          if (isLast(data)) expect(made.store.isRunning).toBe(false);
          got.push(data);
          if (--leavesAfter === 0) clientGone.cancel();
        }
        if (isBehind) return false;
        if (draw() >= reader.slow) return true;
        isBehind = true;
        setTimeout(() => {
          isBehind = false;
          client.onDrain?.();
        }, draw() * 400);
        return false;
      },
      writeAround: () => true,
      end() {
        isOver = true;
      },
      abort() {},
    };
    await new EventSubscriber({
      ...{
        id: "resp_1",
        after: numberOf(got.at(-1)) ?? after,
        client,
        clientGone: clientGone,
        background: made.store,
        polls: made.looks,
      },
      running: () => (reader.isElsewhere || made.message.finished > 0 ? undefined : made.run),
      ...{ stopping: new Stopping(), heartbeatMs: 50 },
    }).run();
    await Bun.sleep(draw() * 100);
  }
  return { after, got };
}

const anyAnswer: fc.Arbitrary<Answer> = fc.record({
  silentMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2_500 })),
  pieces: fc.array(
    fc.record({
      afterMs: fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 0, max: 30 }) }, fc.integer({ min: 0, max: 1_500 })),
      size: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 0, max: 40 }) }, fc.integer({ min: 0, max: 300_000 })),
    }),
    { maxLength: 60 },
  ),
  ends: fc.constantFrom("completed", "broken", "cancelled", "cancelled elsewhere", "ended elsewhere"),
});
const anyReader: fc.Arbitrary<Reader> = fc.record({
  afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3_000 })),
  has: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 })),
  isElsewhere: fc.boolean(),
  slow: fc.constantFrom(0, 0.05, 0.5),
  leavesAfter: fc.oneof(fc.constant(1_000), fc.integer({ min: 1, max: 30 })),
});
const anyCase = fc.record({
  answer: anyAnswer,
  readers: fc.array(anyReader, { minLength: 1, maxLength: 5 }),
  insertMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 1_500 })),
  store: fc.record({ maxMs: fc.constantFrom(0, 20, 400), failing: fc.constantFrom(0, 0.1, 0.4) }),
  seed: fc.nat(),
});

test("gives each follower of a response every event once and in order, the same as in the store", async () => {
  // All cases run concurrently, because they mostly wait.
  const cases = fc.sample(anyCase, 120);
  await Promise.all(
    cases.map(async ({ answer, readers, insertMs, store: unsteady, seed }) => {
      const store = new UnsteadyRunStore({ ...unsteady, draw: drawing(seed) });
      const made = make(store, () => Bun.sleep(insertMs));
      await made.run.begin({
        onLimits() {},
        async ask(call) {
          call.onLedger();
          await answered(made, answer, call);
        },
      });
      const readings = await Promise.all(readers.map((reader, nth) => read(made, reader, seed + nth)));
      await made.run.ended;
      const all = store.all;
      expect(all.map(numberOf)).toEqual(all.map((_, number) => number));
      expect(JSON.parse(all.at(-1) ?? "")).toMatchObject({ response: { status: store.status } });
      if (answer.ends === "ended elsewhere") expect(store.status).toBe("failed");
      for (const [nth, { after, got }] of readings.entries()) {
        // A local follower may have received more events by then.
        const isNotified = answer.ends !== "ended elsewhere" || readers[nth]?.isElsewhere;
        if (isNotified) expect(got).toEqual(all.slice(after + 1));
        // The reported end is the only end.
        expect(got.filter(isLast).filter((end) => end !== all.at(-1))).toEqual([]);
      }
      expect([made.held.total, made.message.finished]).toEqual([0, 1]);
    }),
  );
}, 120_000);

const word = inStream("response.output_text.delta", { delta: "word" });
const steady = { draw: () => 0, maxMs: 0, failing: 0 };

/** Returns a started run and the model's side of it. */
async function begun(store: UnsteadyRunStore, on: Clock = clock): Promise<Made & { model: ClientStream }> {
  const made = make(store, () => Promise.resolve(), on);
  let model: ClientStream | undefined;
  await made.run.begin({
    onLimits() {},
    async ask(call) {
      call.onLedger();
      call.answer((given) => {
        model = given;
      });
    },
  });
  if (!model) throw new Error("It was not answered.");
  return { ...made, model };
}

test("does not store a long item again with each later word", async () => {
  const store = new UnsteadyRunStore(steady);
  const { run, model } = await begun(store);
  const size = 4_000_000;
  const item = { type: "message", content: "x".repeat(size) };
  model.write(inStream("response.output_item.done", { output_index: 0, item }));
  for (let nth = 0; nth < 35; nth++) {
    model.write(word);
    await Bun.sleep(100);
  }
  expect(store.all.length).toBeGreaterThan(20);
  expect(store.response["output"]).toEqual([item]);
  expect(store.writtenSize).toBeLessThan(1.5 * size);
  model.end(completed);
  await run.ended;
  expect(store.status).toBe("completed");
});

test("retries to store a response's end for minutes while the store is away, and then releases its bytes", async () => {
  const shifted = shiftedClock();
  const unsteady = { ...steady, failing: 1 };
  const store = new UnsteadyRunStore(unsteady);
  const { run, model, held } = await begun(store, shifted);
  model.write(word);
  model.end(completed);
  for (let minute = 0; minute < 5; minute++) {
    await Bun.sleep(600);
    shifted.shift(60);
  }
  expect(held.byKind.chats).toBeGreaterThan(0);
  unsteady.failing = 0;
  await run.ended;
  expect([store.status, store.all.length, held.total]).toEqual(["completed", 4, 0]);
});

test("stops following when the client disconnects while it reads earlier events", async () => {
  const made = await begun(new UnsteadyRunStore(steady));
  const clientGone = new Cancellation();
  // The client disconnects during the first write.
  const client: ClientStream = {
    onDrain: undefined,
    write: () => {
      clientGone.cancel();
      return true;
    },
    ...{ writeAround: () => true, end() {}, abort() {} },
  };
  const subscriber = new EventSubscriber({
    ...{
      id: "resp_1",
      after: -1,
      client,
      clientGone: clientGone,
      background: made.store,
      polls: made.looks,
      running: () => made.run,
    },
    ...{ stopping: new Stopping(), heartbeatMs: 60_000 },
  });
  expect(await Promise.race([subscriber.run(), Bun.sleep(500).then(() => "it still is")])).toBeUndefined();
  made.run.cancel();
  await made.run.ended;
});

test("sends no more to a client that stops reading, without delaying the others", async () => {
  const made = await begun(new UnsteadyRunStore(steady));
  const clients = ["stalled", "reading"].map((name) => {
    const got: string[] = [];
    const client: ClientStream = {
      onDrain: undefined,
      write: (bytes) => got.push(bytes) > 0 && name === "reading",
      ...{ writeAround: () => true, end() {}, abort() {} },
    };
    const clientGone = new Cancellation();
    const delivered = new EventSubscriber({
      ...{ id: "resp_1", after: -1, client, clientGone: clientGone, background: made.store, polls: made.looks },
      ...{ running: () => (made.message.finished > 0 ? undefined : made.run) },
      ...{ stopping: new Stopping(), heartbeatMs: 60_000 },
    }).run();
    return { got, left: clientGone, following: delivered };
  });
  for (let nth = 0; nth < 500; nth++) made.model.write(word);
  made.model.end(completed);
  await clients[1]?.following;
  expect(clients.map(({ got }) => got.length)).toEqual([1, 503]);
  clients[0]?.left.cancel();
  await clients[0]?.following;
});
