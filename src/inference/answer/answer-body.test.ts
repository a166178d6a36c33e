// Tests how the body of a whole answer is read: in one piece or several, broken off, too long, or abandoned.

import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { type BodySource, bodyOf } from "../../base/bytes/body-source.ts";
import { AccountMemory, BufferedBytes, bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Dispatched } from "../routing/attempt.ts";
import { WholeBody } from "./answer-body.ts";

function dispatchedWith(body: BodySource): Dispatched {
  return {
    response: { status: 200, headers: new Headers(), body },
    deployment: {} as Dispatched["deployment"],
    model: {} as Dispatched["model"],
    firstByte() {},
    answers() {},
    done() {},
    another: (error) => Promise.reject(error),
  };
}

/** A body that delivers its pieces asynchronously, one after the other. */
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

const wholeBody = (
  dispatched: Dispatched,
  cancellation: Cancellation,
  memoryAccount: MemoryAccount = new BufferedBytes(100_000_000).visitors,
) => new WholeBody(dispatched, decodedRequest({ max_tokens: 1 }), memoryAccount, cancellation);

const never = () => expect.unreachable();
const bytes = Buffer.from("A few bytes of an answer");
/** Bytes of the received buffer before the body; surplus bytes follow the body. */
const head = 10;
const received = Buffer.concat([Buffer.alloc(head, "h"), bytes, Buffer.from("surplus")]);

test("returns a buffered body synchronously as the engine's own bytes", () => {
  const given: ByteSpan[] = [];
  wholeBody(dispatchedWith(bodyOf(bytes)), new Cancellation()).whenSettled((all) => given.push(all), never);
  expect(given).toHaveLength(1);
  expect(given[0]?.text).toBe(bytes.toString());
  expect(given[0]?.buffer).toBe(bytes);
});

test("joins a body that arrives in pieces and rejects one that breaks off", async () => {
  for (const cuts of [[], [1], [5, 20], [bytes.length]]) {
    const pieces = [0, ...cuts].map((from, i) => new ByteSpan(received, head + from, head + (cuts[i] ?? bytes.length)));
    const all = await wholeBody(dispatchedWith(slowBody(pieces, "end")), new Cancellation());
    expect(all.text).toBe(bytes.toString());
  }
  const broken = wholeBody(dispatchedWith(slowBody([ByteSpan.of(bytes)], "fail")), new Cancellation());
  expect(async () => await broken).toThrow(
    expect.objectContaining({
      code: "upstream_error",
      message: "The model server broke off in the middle of the answer. Retry your request.",
    }),
  );
});

test("refuses a body above the answer limit and stops its engine", async () => {
  const piece = ByteSpan.of(new Uint8Array(6 * 1024 * 1024));
  const body = slowBody([piece, piece, piece], "never");
  expect(async () => await wholeBody(dispatchedWith(body), new Cancellation())).toThrow(
    expect.objectContaining({ code: "upstream_error", detail: expect.stringMatching(/^more than 167\d{5} bytes$/) }),
  );
  expect(body.cancelled).toBe(true);
});

test("cancels the engine and rejects with the cancel reason, before or during the body", async () => {
  const cancellation = new Cancellation();
  const body = slowBody([], "never");
  const read = wholeBody(dispatchedWith(body), cancellation);
  const reason = new Error("left");
  cancellation.cancel(reason);
  expect(async () => await read).toThrow(reason);
  expect(body.cancelled).toBe(true);
  const unread = slowBody([ByteSpan.of(bytes)], "end");
  expect(async () => await wholeBody(dispatchedWith(unread), cancellation)).toThrow(reason);
  expect(unread.cancelled).toBe(true);
});

test("refuses an answer that no key may hold, names the setting, and forbids a retry", async () => {
  const piece = ByteSpan.of(Buffer.alloc(8_000_000));
  const dispatched = dispatchedWith(
    slowBody(
      Array.from({ length: 6 }, () => piece),
      "never",
    ),
  );
  const request = decodedRequest({ max_tokens: 200_000 });
  const body = new WholeBody(dispatched, request, bufferedBytes.memoryAccount(new AccountMemory()), new Cancellation());
  const error = await body.then(never, (reason: unknown) => reason);
  expect(error).toMatchObject({ code: "upstream_error", shouldRetry: false });
  expect(String(error)).toContain("limits.held_bytes");
  expect(bufferedBytes.byKind.answers).toBe(0);
});
