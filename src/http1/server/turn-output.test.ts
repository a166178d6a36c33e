// The bytes that connections send in one turn leave complete, in order, and at the end of the turn at the latest.
import { expect, test } from "bun:test";
import { type Sender, TurnOutput } from "./turn-output.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

function gathering({ size = 64, open = 2, bytes = Buffer.alloc(size) } = {}) {
  const output = new TurnOutput(bytes);
  for (let n = 0; n < open; n++) output.requestBegan();
  const log: string[] = [];
  const sender = (name: string, more: Partial<Sender> = {}): Sender => ({
    sendGathered: (bytes, start, end) => {
      log.push(`${name}:${bytes.toString("latin1", start, end)}`);
      more.sendGathered?.(bytes, start, end);
    },
    gatheredSent: () => {
      log.push(`${name} told`);
      more.gatheredSent?.();
    },
  });
  const gather = (from: Sender, text: string) => {
    const bytes = Buffer.from(`<${text}>`);
    const taken = output.gather(from, bytes, 1, bytes.length - 1);
    bytes.fill("!");
    return taken;
  };
  return { output, log, sender, gather };
}

test("sends everything at the end of the turn in order, then notifies the senders", async () => {
  const { log, sender, gather } = gathering();
  const [a, b] = [sender("a"), sender("b")];
  expect([gather(a, "1"), gather(b, "2"), gather(a, "3")]).toEqual([true, true, true]);
  expect(log).toEqual([]);
  await turn();
  const all = ["a:1", "b:2", "a:3", "a told", "b told", "a told"];
  expect(log).toEqual(all);
  await turn();
  expect(log).toEqual(all);
  gather(b, "4");
  await turn();
  expect(log.slice(all.length)).toEqual(["b:4", "b told"]);
});

test("sends adjacent pieces of one sender in one write", async () => {
  const { log, sender, gather } = gathering();
  const a = sender("a");
  for (const text of ["1", "2", "3"]) gather(a, text);
  await turn();
  expect(log).toEqual(["a:123", "a told"]);
});

test("sends the gathered bytes first if there is no room for more", async () => {
  const { log, sender, gather } = gathering({ size: 8 });
  const [a, b] = [sender("a"), sender("b")];
  gather(a, "11111");
  gather(b, "22222");
  expect(log).toEqual(["a:11111"]);
  gather(b, "333");
  gather(b, "4");
  expect(log).toEqual(["a:11111", "b:22222333"]);
  await turn();
  expect(log).toEqual(["a:11111", "b:22222333", "b:4", "a told", "b told", "b told"]);
});

test("does not delay the writes of a single request", () => {
  const { output, log, sender, gather } = gathering({ open: 1 });
  const a = sender("a");
  expect(gather(a, "1")).toBe(false);
  output.requestBegan();
  expect(gather(a, "2")).toBe(true);
  output.requestEnded();
  // "2" is still gathered, and must leave before bytes that the sender now writes itself.
  expect(gather(a, "3")).toBe(false);
  expect(log).toEqual(["a:2"]);
});

test("gathers bytes that were written in place, and makes room for them", async () => {
  const bytes = Buffer.alloc(8);
  const { output, log, sender, gather } = gathering({ bytes });
  const [a, b] = [sender("a"), sender("b")];
  const put = (from: Sender, text: string) => {
    const start = output.reserve(text.length + 1);
    return output.gather(from, bytes, start, start + bytes.write(text, start));
  };
  gather(a, "11");
  expect([put(b, "222"), output.reserve(1)]).toEqual([true, 5]);
  expect(log).toEqual([]);
  expect(put(a, "333")).toBe(true);
  expect(log).toEqual(["a:11", "b:222"]);
  // "4" is not gathered, since only one request is open: its sender sends it, and its place in the buffer is free.
  output.send();
  output.requestEnded();
  expect([put(b, "4"), output.reserve(8), bytes.toString("latin1", 0, 1)]).toEqual([false, 0, "4"]);
  await turn();
  expect(log.slice(2)).toEqual(["a:333", "a told", "b told", "a told"]);
});

test("lets a sender write large pieces itself, after its gathered bytes", () => {
  const { log, sender, gather } = gathering({ size: 64 * 1024 });
  const a = sender("a");
  gather(a, "1");
  expect(gather(a, "x".repeat(16 * 1024 + 1))).toBe(false);
  expect(log).toEqual(["a:1"]);
  expect(gather(a, "x".repeat(16 * 1024))).toBe(true);
});

test("leaves nothing unsent after `send`, and notifies each sender once at the end of the turn", async () => {
  const { output, log, sender, gather } = gathering();
  const [a, b] = [sender("a"), sender("b")];
  gather(a, "1");
  output.send();
  output.send();
  expect(log).toEqual(["a:1"]);
  gather(a, "2");
  gather(b, "3");
  await turn();
  expect(log).toEqual(["a:1", "a:2", "b:3", "a told", "a told", "b told"]);
});

test("sends what listeners and senders write meanwhile in the same turn", async () => {
  const { output, log, sender, gather } = gathering({ size: 4 });
  const late = sender("late");
  let again = true;
  const a = sender("a", {
    gatheredSent: () => void gather(late, "22"),
    sendGathered: () => {
      if (again) gather(late, "33");
      again = false;
    },
  });
  gather(a, "1");
  output.flush();
  expect(log).toEqual(["a:1", "late:33", "a told", "late:22", "late told", "late told"]);
  gather(late, "4");
  await turn();
  expect(log.slice(6)).toEqual(["late:4", "late told"]);
});

test("notifies no sender with unsent bytes, nor twice, if a listener flushes", async () => {
  const { output, log, sender, gather } = gathering();
  const b = sender("b");
  const a = sender("a", {
    gatheredSent: () => {
      output.flush();
      gather(b, "22");
    },
  });
  gather(a, "1");
  gather(b, "2");
  await turn();
  await turn();
  gather(sender("c"), "3");
  await turn();
  expect(log).toEqual(["a:1", "b:2", "a told", "b told", "b:22", "b told", "c:3", "c told"]);
});
