import { expect, test } from "bun:test";
import { PacedStream } from "./paced-stream.ts";

test("hands 1,000 lines on a few at a time, complete and in order, with other work in between", async () => {
  const text = "data: 1\r\n".repeat(1_000);
  let turns = 0;
  const count = () => {
    turns++;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  const pauses: string[] = [];
  const body = { pause: () => pauses.push("pause"), resume: () => pauses.push("resume") };
  let paced: PacedStream | undefined;
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      paced = new PacedStream(body, controller);
      paced.push(Buffer.from(text));
      paced.end(() => controller.close());
    },
    pull: () => paced?.next(),
  });
  const slices: string[] = [];
  const turnOf: number[] = [];
  for await (const slice of stream) {
    slices.push(Buffer.from(slice).toString());
    turnOf.push(turns);
  }
  clearImmediate(turning);
  expect(slices.join("")).toBe(text);
  expect(Math.max(...slices.map((slice) => slice.split("\n").length - 1))).toBeLessThanOrEqual(32);
  for (const turn of turnOf) expect(turnOf.filter((other) => other === turn).length).toBeLessThanOrEqual(2);
  expect(pauses).not.toContain("resume");
});

test("hands many short pieces on in few ticks", async () => {
  const received: number[] = [];
  let turn = 0;
  const body = { pause() {}, resume() {} };
  const paced = new PacedStream(body, { desiredSize: 1, enqueue: () => void received.push(turn) });
  for (let piece = 0; piece < 640; piece++) paced.push(Buffer.from("\n"));
  const ended = new Promise<void>((resolve) => paced.end(resolve));
  const count = () => {
    turn++;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  await ended;
  clearImmediate(turning);
  expect(received.length).toBe(640);
  expect(received.filter((one) => one === 0).length).toBeGreaterThanOrEqual(64);
  expect(turn).toBeLessThan(20);
});

test("fails a stream only after the bytes before the failure were read", async () => {
  const body = { pause() {}, resume() {} };
  let paced: PacedStream | undefined;
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      paced = new PacedStream(body, controller);
      paced.push(Buffer.from("\n".repeat(200)));
      paced.end(() => controller.error(new Error("broken off")));
    },
    pull: () => paced?.next(),
  });
  let bytes = 0;
  const read = async () => {
    for await (const slice of stream) bytes += slice.length;
  };
  await expect(read()).rejects.toThrow("broken off");
  expect(bytes).toBe(200);
});
