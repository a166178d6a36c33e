// Reading a body to its end: whole, too long, broken off, cancelled.

import { expect, test } from "bun:test";
import { Cancellation } from "../cancellation.ts";
import { type BodySink, type BodySource, BodyTooLongError, bodyOf, readAll } from "./body-source.ts";
import { ByteSpan } from "./byte-span.ts";

function scripted(play: (sink: BodySink) => void): BodySource & { cancels: number } {
  return {
    cancels: 0,
    flow: play,
    pause() {},
    resume() {},
    cancel() {
      this.cancels++;
    },
  };
}

const span = (text: string) => ByteSpan.of(text);

test("collects all pieces of a body into one, and reports each", async () => {
  let notified = 0;
  const source = scripted((sink) => {
    sink.data(span("ab"));
    sink.data(span("cd"));
    sink.end();
  });
  const all = await readAll(source, 4, new Cancellation(), () => notified++);
  expect([all.text, notified, source.cancels]).toEqual(["abcd", 2, 0]);
  expect(await readAll(bodyOf(Buffer.from("x")), 4, new Cancellation(), () => {})).toEqual(span("x"));
  expect(await readAll(bodyOf(new Uint8Array()), 4, new Cancellation(), () => {})).toHaveLength(0);
});

test("stops the sender of a body that is too long", async () => {
  const source = scripted((sink) => sink.data(span("abcde")));
  await expect(readAll(source, 4, new Cancellation(), () => {})).rejects.toBeInstanceOf(BodyTooLongError);
  expect(source.cancels).toBe(1);
});

test("rejects a broken-off body with its cause", async () => {
  const source = scripted((sink) => sink.fail(new Error("reset")));
  await expect(readAll(source, 4, new Cancellation(), () => {})).rejects.toThrow("reset");
});

test("stops the sender of a cancelled body and rejects with the reason, before or during the body", async () => {
  for (const early of [true, false]) {
    const cancellation = new Cancellation();
    const source = scripted((sink) => sink.data(span("a")));
    if (early) cancellation.cancel(new Error("left"));
    const read = readAll(source, 4, cancellation, () => {});
    cancellation.cancel(new Error("left"));
    await expect(read).rejects.toThrow("left");
    expect(source.cancels).toBe(1);
  }
});
