// What is left to the end of a turn: in its order, once, and whatever becomes of the others.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { atTurnEnd, sendAtTurnEnd } from "./turn-end.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("runs records before sends, in any order of request, with what they cause", async () => {
  const done: string[] = [];
  sendAtTurnEnd(() => {
    done.push("send");
    atTurnEnd(() => done.push("record of a send"));
    sendAtTurnEnd(() => done.push("send of a send"));
  });
  atTurnEnd(() => {
    done.push("record");
    atTurnEnd(() => done.push("record of a record"));
    sendAtTurnEnd(() => done.push("send of a record"));
  });
  expect(done).toEqual([]);
  await turn();
  const all = ["record", "record of a record", "send", "send of a record", "send of a send", "record of a send"];
  expect(done).toEqual(all);
  await turn();
  expect(done).toEqual(all);
});

test("runs microtasks of the turn before its end", async () => {
  const done: string[] = [];
  atTurnEnd(() => done.push("end"));
  queueMicrotask(() => done.push("microtask"));
  await turn();
  expect(done).toEqual(["microtask", "end"]);
});

test("reports a callback that throws, and runs the others", async () => {
  const source = `
    import { atTurnEnd, sendAtTurnEnd } from ${JSON.stringify(join(import.meta.dir, "turn-end.ts"))};
    process.on("uncaughtException", (error) => console.log("told of", error.message));
    sendAtTurnEnd(() => console.log("send"));
    atTurnEnd(() => { throw new Error("the first"); });
    atTurnEnd(() => console.log("the second"));
    setTimeout(() => atTurnEnd(() => console.log("a later turn")), 20);`;
  const child = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe" });
  const lines = (await new Response(child.stdout).text()).trim().split("\n");
  expect(lines).toEqual(["told of the first", "the second", "send", "a later turn"]);
});
