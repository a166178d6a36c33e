import { expect, test } from "bun:test";
import { Batching } from "./batching.ts";
import { Frames } from "./frames.ts";

const longerThanAFrameMs = 40;

function open(): { add: (name: string) => void; written: () => string[][] } {
  const frames = new Frames(new Batching());
  const turns: string[][] = [];
  let turn: string[] | undefined;
  return {
    add: (name) =>
      frames.add(() => {
        if (turn === undefined) {
          turn = [];
          turns.push(turn);
          queueMicrotask(() => {
            turn = undefined;
          });
        }
        turn.push(name);
      }),
    written: () => turns,
  };
}

test("streams that speak at different times within a frame are written together, in order", async () => {
  const { add, written } = open();
  add("first");
  await Bun.sleep(longerThanAFrameMs);
  add("second");
  await Bun.sleep(0);
  for (const name of ["a", "b", "c"]) {
    add(name);
    await Bun.sleep(2);
  }
  await Bun.sleep(longerThanAFrameMs);
  expect(written()).toEqual([["first"], ["second"], ["a", "b", "c"]]);
});

test("after a frame of silence nobody waits for the next one", async () => {
  const { add, written } = open();
  for (const name of ["a", "b", "c"]) {
    add(name);
    const startedMs = performance.now();
    while (written().at(-1)?.[0] !== name) await new Promise(setImmediate);
    expect(performance.now() - startedMs).toBeLessThan(10);
    await Bun.sleep(longerThanAFrameMs);
  }
});
