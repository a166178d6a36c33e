// MCP servers that mean harm, or are broken, behind the gateway beside a good one: whoever asks them is told so in time, and nobody else notices.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { until } from "../support/headrace.ts";
import { hostileProcess, processWrongs } from "../support/mcp/hostile-process.ts";
import {
  badCalls,
  badLists,
  badNotifications,
  badStarts,
  type HostileServer,
  startHostileServer,
  streamed,
  toolText,
} from "../support/mcp/hostile-server.ts";
import { askRaw, beginRaw, callRaw, type RawAnswer } from "../support/mcp/raw-tools.ts";
import { startToolWorld, type ToolWorld } from "../support/mcp/tool-world.ts";

/** Where no server has any business; it must never be asked. */
let inward: Bun.Server<undefined>;
let inwardAsked = 0;
let good: HostileServer;
let bad: HostileServer;
let world: ToolWorld;
let goodKey: string;
let badKey: string;

const timeoutSeconds = 2;
const maxResultBytes = 1024 * 1024;
/** Over its own time: what it takes to notice on a busy machine. */
const graceMs = 3_000;
/** The most that calls of others may take longer meanwhile, of what they take in quiet. */
const maxTimesSlower = 10;
/** The part of what goes on beside it that a call may wait for. */
const maxOfWork = 0.25;

beforeAll(async () => {
  inward = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      inwardAsked++;
      return Response.json({});
    },
  });
  [good, bad] = [startHostileServer(), startHostileServer()];
  const bounds = { timeout_seconds: timeoutSeconds, max_result_bytes: maxResultBytes };
  world = await startToolWorld([
    { name: "good", url: good.url },
    { name: "bad", url: bad.url, ...bounds },
  ]);
  [goodKey, badKey] = [await world.key(), await world.key()];
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  for (const server of [good, bad]) await server[Symbol.asyncDispose]();
  await inward.stop(true);
});

/** Calls the good server all the while; gives the time in the middle of all that its calls took. Rejects where one failed. */
async function meanwhile(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  let isOver = false;
  const calling = (async () => {
    while (!isOver || times.length < 5) {
      const { message, ms } = await callRaw(world.at(), "good_echo", { key: goodKey });
      expect(message.result).toMatchObject({ content: [{ type: "text", text: "Said again." }] });
      times.push(ms);
      await Bun.sleep(5);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await calling;
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
}

let quietMs: number | undefined;

/** What goes on beside it is as good as in quiet, nothing stays held, and nothing was asked inward. */
async function unnoticed(work: () => Promise<unknown>): Promise<void> {
  quietMs ??= await meanwhile(() => Bun.sleep(300));
  const [held, rss, began] = [bufferedBytes.total, process.memoryUsage.rss(), performance.now()];
  const ms = await meanwhile(work);
  const workMs = performance.now() - began;
  // The machine may be another one by now: other tests run beside these.
  if (ms >= quietMs * maxTimesSlower) quietMs = await meanwhile(() => Bun.sleep(300));
  expect(ms).toBeLessThan(Math.max(workMs * maxOfWork, quietMs * maxTimesSlower));
  await until(() => bufferedBytes.total <= held, "all that was held is given back");
  await until(() => {
    Bun.gc(true);
    return process.memoryUsage.rss() - rss < 256 * 1024 * 1024;
  }, "memory is given back");
  expect(inwardAsked).toBe(0);
}

describe("an MCP server that answers a call badly", () => {
  const ways = Object.entries(badCalls("http://127.0.0.1:1/inward"));
  test.each(ways.map(([what]) => what))(
    "fails a call answered with %s in time, by its server's name, and no others",
    async (what) => {
      const way = badCalls(`http://127.0.0.1:${inward.port}/inward`)[what];
      bad.misbehave(way ?? (() => undefined));
      await unnoticed(async () => {
        const { message, ms } = await callRaw(world.at(), "bad_echo", { key: badKey });
        expect(message.error?.message ?? `${JSON.stringify(message).slice(0, 300)}`).toContain('"bad"');
        expect(ms).toBeLessThan(timeoutSeconds * 1_000 + graceMs);
        expect(JSON.stringify(message)).not.toContain("secret");
      });
      bad.misbehave(() => undefined);
      const again = await callRaw(world.at(), "bad_echo", { key: badKey });
      expect(again.message.result).toBeDefined();
    },
  );
});

describe("an MCP server that lists tools badly", () => {
  test.each(Object.keys(badLists()))(
    "omits an MCP server that lists %s from the list of all, in time",
    async (what) => {
      await using worse = startHostileServer(badLists()[what]);
      await using own = await beside(worse);
      await unnoticed(async () => {
        const { message, ms } = await askRaw(`${own.at()}?tools=all`, "tools/list", {}, { key: own.callers });
        const tools = (message.result?.["tools"] ?? []) as { name: string }[];
        expect(tools.map(({ name }) => name)).toEqual(["good_echo"]);
        expect(ms).toBeLessThan(10_000 + graceMs);
      });
      expect(own.server.logged("mcp_list_failed")).toMatchObject([{ server: "worse" }]);
    },
  );
});

/** A gateway before the good server and one that is worse. */
async function beside(worse: { url: string }): Promise<ToolWorld & { callers: string }> {
  const own = await startToolWorld([
    { name: "good", url: good.url },
    { name: "worse", url: worse.url, timeout_seconds: timeoutSeconds, max_result_bytes: maxResultBytes },
  ]);
  return { ...own, callers: await own.key() };
}

describe("an MCP server that behaves badly at its start", () => {
  test.each(Object.keys(badStarts))(
    "omits an MCP server that %s from lists, and logs its name",
    async (what) => {
      await using worse = startHostileServer(badStarts[what]);
      await using own = await beside(worse);
      await unnoticed(async () => {
        const listed = askRaw(`${own.at()}?tools=all`, "tools/list", {}, { key: own.callers });
        const { message } = await listed;
        const tools = (message.result?.["tools"] ?? []) as { name: string }[];
        expect(tools.map(({ name }) => name)).toEqual(["good_echo"]);
      });
      const log = own.server.logged("mcp_list_failed");
      expect(log).toMatchObject([{ server: "worse" }]);
      expect(JSON.stringify(log).length).toBeLessThan(2_000);
    },
    60_000,
  );

  test("does not wait for an MCP server that sends its answer's head a byte at a time", async () => {
    const sockets = new Set<Bun.Socket<undefined>>();
    const slow = Bun.listen<undefined>({
      port: 0,
      hostname: "127.0.0.1",
      socket: {
        open: (socket) => void sockets.add(socket),
        close: (socket) => void sockets.delete(socket),
        data() {},
      },
    });
    const dripping = setInterval(() => {
      for (const socket of sockets) socket.write("H");
    }, 100);
    try {
      await using own = await beside({ url: `http://127.0.0.1:${slow.port}/mcp` });
      await unnoticed(async () => {
        const { message, ms } = await askRaw(`${own.at()}?tools=all`, "tools/list", {}, { key: own.callers });
        expect(JSON.stringify(message.result)).toContain("good_echo");
        expect(ms).toBeLessThan(10_000 + graceMs);
      });
    } finally {
      clearInterval(dripping);
      slow.stop(true);
    }
  });
});

test("accepts the first of two answers to one call and drops the second", async () => {
  bad.misbehave(({ id, method }) =>
    method === "tools/call"
      ? streamed([
          { jsonrpc: "2.0", id, result: toolText("first") },
          { jsonrpc: "2.0", id, result: toolText("second") },
        ])
      : undefined,
  );
  const { message } = await callRaw(world.at(), "bad_echo", { key: badKey });
  expect(message.result).toMatchObject({ content: [{ text: "first" }] });
  bad.misbehave(() => undefined);
});

describe("an MCP server that floods the stream beside calls", () => {
  test.each(Object.keys(badNotifications))(
    "survives %s sent without end beside calls",
    async (what) => {
      await using worse = startHostileServer(badNotifications[what]);
      await using own = await beside(worse);
      const client = new AbortController();
      try {
        await unnoticed(async () => {
          const session = await beginRaw(own.at(), own.callers);
          expect((await session.listen(client.signal)).status).toBe(200);
          await session.ask("tools/list");
          await Bun.sleep(2_000);
          const { message, ms } = await session.ask("tools/call", { name: "worse_echo", arguments: {} });
          expect(message.result ?? message.error).toBeDefined();
          expect(ms).toBeLessThan(timeoutSeconds * 1_000 + graceMs);
          await session.end();
        });
      } finally {
        client.abort();
      }
    },
    60_000,
  );
});

describe("an MCP process that behaves badly", () => {
  const isAlive = (pid: number) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  test.each(processWrongs)(
    "fails the call of a process that %s in time, without disturbing others",
    async (how) => {
      await using own = await startToolWorld([
        { name: "good", url: good.url },
        { name: "worse", command: hostileProcess(), timeout_seconds: timeoutSeconds, max_result_bytes: maxResultBytes },
      ]);
      const key = await own.key();
      const pids = pidsIn(await callRaw(own.at("worse"), "echo", { key }));
      expect(pids.length).toBe(4);
      await unnoticed(async () => {
        const params = { name: "echo", arguments: { how }, _meta: { progressToken: 1 } };
        const session = await beginRaw(own.at("worse"), key);
        const { message, ms } = await session.ask("tools/call", params);
        expect(message.error?.message).toContain('"worse"');
        expect(ms).toBeLessThan(timeoutSeconds * 1_000 + graceMs);
        await session.end();
      });
      // Whatever it does, it goes with the gateway, and so do its children.
      await own[Symbol.asyncDispose]();
      await until(() => pids.every((pid) => !isAlive(pid)), "all of it is gone");
    },
    60_000,
  );
});

function pidsIn({ message }: RawAnswer): number[] {
  const [{ text = "[]" } = {}] = (message.result?.["content"] ?? []) as { text?: string }[];
  return JSON.parse(text) as number[];
}
