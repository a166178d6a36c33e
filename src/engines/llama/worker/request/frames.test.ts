import { expect, test } from "bun:test";
import { Batching } from "../batching.ts";
import { Frames } from "./frames.ts";

/** The turns of the event loop within which work without a timer is done. */
const fewTurns = 5;

function open(frameMs: number): { add: (name: string) => void; written: () => string[][] } {
  const frames = new Frames(new Batching(), frameMs);
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

async function turns(): Promise<void> {
  for (let turn = 0; turn < fewTurns; turn++) await new Promise(setImmediate);
}

test("writes streams of one frame together, in order", async () => {
  const { add, written } = open(300);
  add("first");
  await turns();
  for (const name of ["a", "b", "c"]) {
    add(name);
    await Bun.sleep(2);
  }
  expect(written()).toEqual([["first"]]);
  await Bun.sleep(400);
  expect(written()).toEqual([["first"], ["a", "b", "c"]]);
});

test("writes at once after a frame of silence", async () => {
  const { add, written } = open(20);
  for (const name of ["a", "b", "c"]) {
    add(name);
    await turns();
    expect(written().at(-1)).toEqual([name]);
    await Bun.sleep(30);
  }
});
