import { expect, test } from "bun:test";
import { Batching } from "../batching.ts";
import { EventStream } from "./event-stream.ts";
import { Frames } from "./frames.ts";

function open(frames = new Frames(new Batching())): { stream: EventStream; read: () => Promise<string | undefined> } {
  const stream = new EventStream(frames, () => {});
  const reader = stream.body.getReader();
  const decoder = new TextDecoder();
  return {
    stream,
    async read() {
      const { value } = await reader.read();
      return value === undefined ? undefined : decoder.decode(value);
    },
  };
}

test("sends the first text at once, and following texts together", async () => {
  const { stream, read } = open();
  stream.open("role ");
  expect(await read()).toBe("role ");
  stream.push(() => "first ");
  expect(await read()).toBe("first ");
  for (const text of ["a ", "b ", "c "]) stream.push(() => text);
  expect(await read()).toBe("a b c ");
});

test("sends one piece per frame for each of several streams, with all their text", async () => {
  const frames = new Frames(new Batching(), 300);
  const streams = [open(frames), open(frames)];
  for (const { stream, read } of streams) {
    stream.push(() => "first ");
    expect(await read()).toBe("first ");
  }
  // This writes the next text and begins a frame.
  for (const { stream, read } of streams) {
    stream.push(() => "second ");
    expect(await read()).toBe("second ");
  }
  const pieces = streams.map(({ read }) => read());
  for (const text of ["a ", "b ", "c "]) {
    for (const { stream } of streams) stream.push(() => text);
    await Bun.sleep(1);
  }
  expect(await Promise.all(pieces)).toEqual(["a b c ", "a b c "]);
});

test("sends the first text of a stream without waiting for another stream's frame", async () => {
  const frames = new Frames(new Batching(), 300);
  const other = open(frames);
  for (const text of ["first ", "second "]) {
    other.stream.push(() => text);
    await other.read();
  }
  other.stream.push(() => "waits ");
  const { stream, read } = open(frames);
  const reading = read();
  const late = new Promise((resolve) => setImmediate(() => resolve("late")));
  stream.push(() => "first ");
  expect(await Promise.race([reading, late])).toBe("first ");
});

test("sends the end at once, after everything before it in order", async () => {
  const { stream, read } = open();
  for (const text of ["a ", "b "]) stream.push(() => text);
  stream.end();
  expect(await read()).toBe("a b ");
  expect(await read()).toBeUndefined();
});

test("makes writers wait while the reader does not read", async () => {
  const { stream, read } = open();
  const much = "x".repeat(40_000);
  stream.push(() => much);
  let waits: Promise<void> | undefined;
  while (waits === undefined) {
    await Bun.sleep(1);
    waits = stream.push(() => "more ");
  }
  expect(await Promise.race([waits.then(() => "goes on"), Bun.sleep(30).then(() => "waits")])).toBe("waits");
  expect(await read()).toContain(much);
  await waits;
});

test("notifies once when the reader leaves, and releases waiting writers", async () => {
  let left = 0;
  const stream = new EventStream(new Frames(new Batching()), () => {
    left += 1;
  });
  stream.push(() => "x".repeat(40_000));
  let waits: Promise<void> | undefined;
  while (waits === undefined) {
    await Bun.sleep(1);
    waits = stream.push(() => "more ");
  }
  await stream.body.cancel();
  await waits;
  expect(left).toBe(1);
  expect(stream.push(() => "for nobody")).toBeUndefined();
  stream.end();
});

test("ends a body that is given up before it was read", async () => {
  const { stream, read } = open();
  const pending = read();
  stream.leave();
  expect(await pending).toBeUndefined();
});
