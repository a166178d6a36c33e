import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../../tests/support/headrace.ts";
import { callerOf, exchangeFor, LinkWorld, textOf } from "../../../tests/support/link-world.ts";
import { mcpServerAt } from "../../../tests/support/mcp-servers.ts";
import { handlerFor, requestFrom } from "../../../tests/support/tool-desk.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { ClientSession, ClientSessions } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import { markedProcesses, markOf } from "../../processes/orphans.ts";

const script = join(import.meta.dir, "..", "..", "..", "tests", "support", "tool-process.ts");

function processOf(how: string, own: Partial<McpServer> = {}): McpServer {
  return mcpServerAt([process.execPath, script, how], own);
}

const isThere = (pid: number) => existsSync(`/proc/${pid}`);
const processesOf = ({ dataDir }: LinkWorld) => markedProcesses(markOf(dataDir, ""));

for (const how of ["fine", "modern", "no probe"]) {
  describe(`a process that is ${how}`, () => {
    test("starts a process on the first request, and removes it and its directory on close", async () => {
      await using world = new LinkWorld();
      const link = await world.open(processOf(how));
      expect(link.isLegacy).toBe(how === "no probe");
      const { pid } = JSON.parse(textOf(await world.call(processOf(how), "where")));
      expect(isThere(pid)).toBe(true);
      await world.links.shut();
      expect(isThere(pid)).toBe(false);
      expect(readdirSync(join(world.dataDir, "tool-processes"))).toEqual([]);
      expect(world.links.counts).toEqual({ links: 0, processes: 0 });
    });
  });
}

test("gives a process an empty directory, and none of the gateway's environment", async () => {
  await using world = new LinkWorld();
  const at = processOf("fine", {
    place: { kind: "command", command: [process.execPath, script, "fine"], env: { OWN: "1" }, directory: null },
  });
  const { env, directory } = JSON.parse(textOf(await world.call(at, "where")));
  const { PATH: _path, LANG: _lang, HEADRACE_MODEL_PROCESS: _mark, ...rest } = env;
  expect(rest).toEqual({ HOME: directory, OWN: "1" });
  expect(directory).toStartWith(join(world.dataDir, "tool-processes"));
  // The test runtime keeps a directory of its own there.
  expect(readdirSync(directory).filter((name) => name !== ".bun")).toEqual([]);
});

test("reports a process whose directory cannot be created, and counts no process for it", async () => {
  await using world = new LinkWorld();
  const [first, second] = [processOf("fine"), processOf("fine", { name: "second" })];
  await world.call(first, "where");
  world.links.close(first.name);
  await until(() => world.links.counts.processes === 0, "the process to be gone");
  const room = join(world.dataDir, "tool-processes");
  rmSync(room, { recursive: true });
  writeFileSync(room, "");
  await expect(world.call(second, "where")).rejects.toMatchObject({ code: "upstream_error" });
  expect(world.links.counts.processes).toBe(0);
});

test("starts no process just to unsubscribe from a resource", async () => {
  await using world = new LinkWorld();
  const link = await world.open(processOf("fine"));
  await world.call(processOf("fine"), "crash").catch(() => {});
  await until(() => world.links.counts.processes === 0, "the process to be gone");
  expect(await link.request("resources/unsubscribe", { uri: "note:a" }, exchangeFor())).toEqual({ result: {} });
  expect(world.links.counts.processes).toBe(0);
});

test("gives callers a process each, or one in common if they share the server", async () => {
  await using world = new LinkWorld();
  const pidOf = async (at: McpServer, key: string) => JSON.parse(textOf(await world.call(at, "where", { key }))).pid;
  const own = processOf("fine");
  expect(await pidOf(own, "key_1")).not.toBe(await pidOf(own, "key_2"));
  const shared = processOf("fine", { name: "shared", sharing: "all" });
  expect(await pidOf(shared, "key_1")).toBe(await pidOf(shared, "key_2"));
});

describe("fails a call whose process misbehaves midway, and starts another process for the next call", () => {
  const ends = { crash: "has ended", huge: "line of more than 100000 bytes", half: "no message of the protocol" };
  for (const [what, said] of Object.entries(ends)) {
    test(what, async () => {
      await using world = new LinkWorld();
      const at = processOf("fine");
      await expect(world.call(at, what)).rejects.toMatchObject({
        code: "upstream_error",
        message: expect.stringContaining(said),
      });
      const next = world.call(at, "where");
      await until(async () => {
        // The pause after a failure follows the gateway's clock.
        world.clock.advance(1_000);
        await Bun.sleep(10);
        return await Promise.race([next.then(() => true), Bun.sleep(1)]);
      }, "it is started again");
      expect(JSON.parse(textOf(await next)).pid).toBeGreaterThan(0);
    });
  }
});

test("lets other work run between the messages of a process that writes many at once", async () => {
  await using world = new LinkWorld();
  const at = processOf("fine", { maxResultBytes: 1_000_000, timeoutMs: 25_000 });
  const link = await world.open(at);
  let turn = 0;
  const count = () => {
    turn++;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  const notesOfTurn = new Map<number, number>();
  const stop = link.onChange((method) => {
    if (method === "notifications/note") notesOfTurn.set(turn, (notesOfTurn.get(turn) ?? 0) + 1);
  });
  expect(textOf(await world.call(at, "notes"))).toBe("noted");
  clearImmediate(turning);
  stop();
  expect([...notesOfTurn.values()].reduce((sum, notes) => sum + notes, 0)).toBe(3_000);
  expect(Math.max(...notesOfTurn.values())).toBeLessThanOrEqual(128);
}, 30_000);

test("keeps the standard error of a process for the operator", async () => {
  await using world = new LinkWorld();
  await world.call(processOf("fine"), "crash").catch(() => {});
  await until(
    () => world.links.output("files").some(({ text }) => text === "something is wrong in here"),
    "it is kept",
  );
});

test("ends a process that writes invalid output, and delays its next start", async () => {
  await using world = new LinkWorld();
  const at = processOf("garbage");
  const opening = world.open(at);
  await expect(opening).rejects.toThrow("no message of the protocol");
  for (let time = 0; time < 4; time++) {
    await world.open(at).catch(() => {});
  }
  await expect(world.open(at)).rejects.toMatchObject({ code: "service_unavailable" });
  await until(() => processesOf(world).length === 0, "nothing of it is left");
}, 20_000);

test("ignores the second of two responses to one call", async () => {
  await using world = new LinkWorld();
  const at = processOf("fine");
  expect(textOf(await world.call(at, "twice"))).toBe("first");
  expect(JSON.parse(textOf(await world.call(at, "where"))).pid).toBeGreaterThan(0);
});

test("routes a process's request to the only running call, and refuses it if several run", async () => {
  await using world = new LinkWorld();
  const at = processOf("no probe");
  const asked = async () => ({ action: "accept", content: { name: "Ada" } });
  expect(JSON.parse(textOf(await world.call(at, "ask", { asked })))).toEqual(await asked());
  const cancellation = new Cancellation();
  const hanging = world.call(at, "hang", { cancellation });
  expect(textOf(await world.call(at, "ask", { asked }))).toStartWith("error");
  cancellation.cancel(new Error("left"));
  await expect(hanging).rejects.toThrow("left");
});

test("forwards change notifications of a process", async () => {
  await using world = new LinkWorld();
  const link = await world.open(processOf("no probe"));
  const received: string[] = [];
  link.onChange((method) => received.push(method));
  await link.request("tools/call", { name: "change" }, exchangeFor());
  await until(() => received.includes("notifications/tools/list_changed"), "it was told");
});

// long-lived: mcpProcess.total, mcpProcess.idle
test("bounds processes, and stops idle ones with all their child processes", async () => {
  await using world = new LinkWorld({ bounds: { maxProcessesOfServer: 1, idleMs: 50 } });
  const at = processOf("fine");
  const child = Number(textOf(await world.call(at, "child", { key: "key_1" })));
  expect(isThere(child)).toBe(true);
  await expect(world.call(at, "where", { key: "key_2" })).rejects.toMatchObject({ code: "service_unavailable" });
  await until(() => !isThere(child), "the process that was idle made room, and its child is gone");
  await world.call(at, "where", { key: "key_2" });
  world.clock.advance(1_000);
  await until(() => world.links.counts.processes === 0, "what was idle is gone");
});

// long-lived: mcpProcess.credential
test("stops using a user's process when access ends, and ends it after the idle time", async () => {
  await using world = new LinkWorld({ bounds: { idleMs: 50 } });
  let server = processOf("fine");
  const open: ClientSessions["open"] = async (...of) => {
    const link = await world.links.open(...of);
    const { isLegacy, revision, capabilities, serverInfo, instructions } = link;
    const request: ClientSession["request"] = (...asked) => link.request(...asked);
    // Cached lists of the request handler would listen to the session for half a minute, and so keep it in use.
    return { isLegacy, revision, capabilities, serverInfo, instructions, request, onChange: () => () => {} };
  };
  const { handler } = handlerFor([], { links: { open }, servers: { all: () => [server], find: () => server } });
  const call = () =>
    handler.answer(
      "tools/call",
      { name: `${server.name}_where`, arguments: {} },
      {
        ...{ ...requestFrom(callerOf("key_1")), capabilities: {}, isAskable: false, cancellation: new Cancellation() },
        ...{ notify: () => {}, ask: () => Promise.reject(new Error("nobody is asked")) },
      },
    );
  const { pid } = JSON.parse(textOf({ result: await call() }));
  server = { ...server, accounts: [] };
  await expect(call()).rejects.toThrow("Unknown tool");
  expect(processesOf(world)).toEqual([pid]);
  world.clock.advance(1_000);
  await until(() => world.links.counts.processes === 0, "the process is gone");
  expect(isThere(pid)).toBe(false);
});

test("reports a program that does not exist", async () => {
  await using world = new LinkWorld();
  const at = mcpServerAt(["/nowhere/to/be/found"]);
  await expect(world.open(at)).rejects.toMatchObject({ code: "upstream_error" });
});

// long-lived: mcpProcess.server
test("leaves no process behind after the gateway was killed, even one that reads no input", async () => {
  await using world = new LinkWorld();
  const gateway = Bun.spawn(
    [process.execPath, join(import.meta.dir, "..", "..", "..", "tests", "support", "tool-gateway.ts"), world.dataDir],
    {
      stdout: "pipe",
    },
  );
  const { value } = await gateway.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("asked\n");
  expect(processesOf(world).length).toBeGreaterThan(0);
  gateway.kill("SIGKILL");
  await until(() => processesOf(world).length === 0, "nothing of it is left");
});

test("gives up a silent process after the connect timeout, and ends it", async () => {
  await using world = new LinkWorld({ connectMs: 300 });
  await expect(world.open(processOf("silent"))).rejects.toMatchObject({ code: "upstream_timeout" });
  await until(() => world.links.counts.processes === 0, "it is gone");
});
