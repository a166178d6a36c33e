// Reading the body of a whole answer: at once or in pieces, broken off, too long, left.

import { expect, test } from "bun:test";
import { type BodySource, bodyOf } from "../domain/body-source.ts";
import { ByteSpan } from "../domain/byte-span.ts";
import { Cancellation } from "../domain/cancellation.ts";
import { WholeBody } from "./answer-body.ts";
import type { Dispatched } from "./attempt.ts";

function dispatchedWith(body: BodySource): Dispatched {
  return {
    response: { status: 200, headers: new Headers(), body },
    deployment: {} as Dispatched["deployment"],
    model: {} as Dispatched["model"],
    firstByte() {},
    done() {},
  };
}

/** Gives its pieces one after the other, later. */
function slowBody(pieces: readonly ByteSpan[], end: "end" | "fail" | "never"): BodySource & { cancelled: boolean } {
  return {
    cancelled: false,
    flow(sink) {
      queueMicrotask(() => {
        for (const piece of pieces) sink.data(piece);
        if (end === "end") sink.end();
        if (end === "fail") sink.fail(new Error("reset"));
      });
    },
    pause() {},
    resume() {},
    cancel() {
      this.cancelled = true;
    },
  };
}

const never = () => expect.unreachable();
const bytes = Buffer.from("A few bytes of an answer");
/** What came with them: a head before and something behind. */
const head = 10;
const received = Buffer.concat([Buffer.alloc(head, "h"), bytes, Buffer.from("surplus")]);

test("a body that is here is given in the call that asks for it, as the engine's own bytes", () => {
  const given: ByteSpan[] = [];
  new WholeBody(dispatchedWith(bodyOf(bytes)), new Cancellation()).whenSettled((all) => given.push(all), never);
  expect(given).toHaveLength(1);
  expect(given[0]?.text).toBe(bytes.toString());
  expect(given[0]?.buffer).toBe(bytes);
});

test("a body in pieces is put together, and fails where it breaks off", async () => {
  for (const cuts of [[], [1], [5, 20], [bytes.length]]) {
    const pieces = [0, ...cuts].map((from, i) => new ByteSpan(received, head + from, head + (cuts[i] ?? bytes.length)));
    const all = await new WholeBody(dispatchedWith(slowBody(pieces, "end")), new Cancellation());
    expect(all.text).toBe(bytes.toString());
  }
  const broken = new WholeBody(dispatchedWith(slowBody([ByteSpan.of(bytes)], "fail")), new Cancellation());
  expect(async () => await broken).toThrow(
    expect.objectContaining({
      code: "upstream_error",
      message: "The model server broke off in the middle of the answer.",
    }),
  );
});

test("a body longer than any answer is refused, and its engine stopped", async () => {
  const piece = ByteSpan.of(new Uint8Array(43 * 1024 * 1024));
  const body = slowBody([piece, piece, piece], "never");
  expect(async () => await new WholeBody(dispatchedWith(body), new Cancellation())).toThrow(
    expect.objectContaining({ code: "upstream_error", detail: "more than 134217728 bytes" }),
  );
  expect(body.cancelled).toBe(true);
});

test("cancelled in the middle or before, the engine is told to stop, and the reason is what it ends with", async () => {
  const cancellation = new Cancellation();
  const body = slowBody([], "never");
  const read = new WholeBody(dispatchedWith(body), cancellation);
  const reason = new Error("left");
  cancellation.cancel(reason);
  expect(async () => await read).toThrow(reason);
  expect(body.cancelled).toBe(true);
  const unread = slowBody([ByteSpan.of(bytes)], "end");
  expect(async () => await new WholeBody(dispatchedWith(unread), cancellation)).toThrow(reason);
  expect(unread.cancelled).toBe(true);
});
