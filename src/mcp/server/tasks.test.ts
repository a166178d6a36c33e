// Tasks of calls, as the request handler keeps them: their owners, lifetimes and records.
import { expect, jest, test } from "bun:test";
import { until } from "../../../tests/support/headrace.ts";
import { accountFor, principalFor } from "../../../tests/support/principal.ts";
import { handlerFor, mcpServerFor, requestFrom, serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { AccountMemory, BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { systemClock } from "../../base/clock.ts";
import type { Principal } from "../../domain/principal.ts";
import type { JsonObject, ToolAnswer } from "../../domain/tools/client-session.ts";
import type { ClientCall } from "./client-call.ts";
import type { RequestHandler } from "./request-handler.ts";
import { tasksExtension } from "./tasks.ts";

const knowing: JsonObject = { extensions: { [tasksExtension]: {} } };
const someone = principalFor();

function callOf(changes: Partial<ClientCall> = {}, principal: Principal = someone): ClientCall {
  return {
    ...requestFrom(principal),
    ...{ capabilities: knowing, isAskable: false, cancellation: new Cancellation(), notify: () => {} },
    ask: () => Promise.reject(new Error("nobody asks")),
    ...changes,
  };
}

/** Server that creates a numbered task for each call, and reports the status that `says` has. */
function tasking(says: JsonObject = { status: "working" }, isLegacy = false) {
  let made = 0;
  const answer = (method: string, params: JsonObject): ToolAnswer => {
    if (method !== "tools/call") return { result: { ...params, ...says } };
    const task = { taskId: `${++made}`, status: "working", ttl: null };
    return { result: isLegacy ? { task } : { ...task, resultType: "task" } };
  };
  const link = new TestLink(serving([{ name: "work", inputSchema: { type: "object" } }], answer), { isLegacy });
  return { link, ...handlerFor([[mcpServerFor("one"), link]]) };
}

const made = (handler: RequestHandler, call = callOf(), more: JsonObject = {}) =>
  handler.answer("tools/call", { name: "one_work", arguments: {}, ...more }, call);

test("gives a task to its caller alone, under an id that names the server", async () => {
  const { handler, link } = tasking();
  expect(await made(handler)).toMatchObject({ resultType: "task", taskId: "one.1" });
  expect(await handler.answer("tasks/get", { taskId: "one.1" }, callOf())).toMatchObject({ taskId: "one.1" });
  expect(link.asked.at(-1)).toMatchObject({ method: "tasks/get", params: { taskId: "1" } });
  const asked = link.asked.length;
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
    for (const [taskId, call] of [
      ["one.1", callOf({}, principalFor({ keys: [{ ...someone.keys[0], id: "key_other" }] }))],
      ["one.2", callOf()],
      ["two.1", callOf()],
      ["1", callOf()],
    ] as const) {
      await expect(handler.answer(method, { taskId }, call)).rejects.toMatchObject({
        code: -32_602,
        message: "Unknown task.",
      });
    }
  }
  const lists = [["one/other"]];
  const other = handler.answer("tasks/get", { taskId: "one.1" }, callOf({}, { ...someone, tools: { lists } }));
  await expect(other).rejects.toMatchObject({ code: -32_602 });
  expect(link.asked.length).toBe(asked);
  await handler.close();
});

test.each([
  ["completed", { status: "completed", result: { isError: true } }, "completed  true"],
  ["failed", { status: "failed", error: { code: -32_603, message: "no" } }, "failed upstream_error false"],
  ["cancelled", { status: "cancelled" }, "cancelled  false"],
])("records a call as one use until its task is %s", async (_, says, end) => {
  const { handler, ended, link } = tasking(says);
  await made(handler);
  expect(ended).toEqual([]);
  expect(link.subscribers).toBe(2);
  await handler.answer("tasks/get", { taskId: "one.1" }, callOf());
  await handler.answer("tasks/get", { taskId: "one.1" }, callOf());
  expect(ended.filter((one) => one.includes("tools/call"))).toEqual([`one tools/call work ${end}`]);
  expect(link.subscribers).toBe(1);
});

// long-lived: mcpTask.server
test("ends the record of a task on a status notification, and when the gateway stops", async () => {
  const { handler, ended, link } = tasking();
  await made(handler);
  await made(handler);
  link.changed("notifications/tasks", { taskId: "2", status: "completed" });
  expect(ended).toEqual(["one tools/call work completed  false"]);
  await handler.close();
  expect(ended.slice(1)).toEqual(["one tools/call work cancelled  false"]);
});

// long-lived: mcpTask.age
test("records a task no longer than a call may last, and keeps it no longer than its server states", async () => {
  jest.useFakeTimers();
  try {
    const { handler, ended } = tasking();
    await made(handler);
    jest.advanceTimersByTime(599_000);
    expect(ended).toEqual([]);
    jest.advanceTimersByTime(2_000);
    expect(ended).toEqual(["one tools/call work completed  false"]);
    await handler.answer("tasks/get", { taskId: "one.1" }, callOf());
    jest.advanceTimersByTime(3_600_000);
    await expect(handler.answer("tasks/get", { taskId: "one.1" }, callOf())).rejects.toMatchObject({ code: -32_602 });
  } finally {
    jest.useRealTimers();
  }
});

// long-lived: mcpTask.account
test("bounds an account with many keys to 1,024 tasks, which leaves room for others", async () => {
  const { handler } = tasking();
  const [own] = someone.keys;
  const by = (account: string, key: string) => {
    const { account: of } = someone;
    return callOf({}, { ...someone, account: { ...of, id: account }, keys: [{ ...own, id: key }] });
  };
  for (let i = 0; i < 1_024; i++) await made(handler, by("acct_hog", `key_${i >> 5}`));
  await expect(made(handler, by("acct_hog", "key_new"))).rejects.toMatchObject({
    data: { code: "rate_limit_exceeded" },
  });
  await made(handler, by("acct_other", "key_new"));
  await handler.close();
});

// long-lived: mcpTask.total
test("bounds the tasks of all accounts together to 4,096", async () => {
  const { handler } = tasking();
  const [own] = someone.keys;
  const by = (account: number, key: number) =>
    callOf({}, principalFor({ account: accountFor({ id: `acct_${account}` }), keys: [{ ...own, id: `key_${key}` }] }));
  for (let i = 0; i < 4_096; i++) await made(handler, by(i >> 10, i >> 5));
  await expect(made(handler, by(9, 9_999))).rejects.toMatchObject({ data: { code: "rate_limit_exceeded" } });
  await handler.close();
});

// long-lived: mcpTask.key
test("cancels a task that the client did not ask for, or that exceeds the bound", async () => {
  const { handler, link, ended } = tasking();
  await expect(made(handler, callOf({ capabilities: {} }))).rejects.toMatchObject({
    message: expect.stringContaining("nobody asked"),
  });
  expect(link.asked.at(-1)).toEqual({ method: "tasks/cancel", params: { taskId: "1" } });
  expect(ended).toEqual(["one tools/call work failed upstream_error false"]);
  for (let count = 0; count < 64; count++) await made(handler);
  await expect(made(handler)).rejects.toMatchObject({ data: { code: "rate_limit_exceeded" } });
  expect(link.asked.at(-1)).toEqual({ method: "tasks/cancel", params: { taskId: "66" } });
  await handler.close();
});

test("creates a task for a call of a 2025-11-25 client, and returns the result on a later request", async () => {
  const related = { "io.modelcontextprotocol/related-task": { taskId: "1" } };
  const { handler, link, ended } = tasking({ content: [], _meta: related }, true);
  const earlier = callOf({ isAskable: true, capabilities: {} });
  expect(await made(handler, earlier, { task: { ttl: 1_000 } })).toEqual({
    task: { taskId: "one.1", status: "working", ttl: null },
  });
  expect(link.asked.at(-1)?.params).toMatchObject({ task: { ttl: 1_000 } });
  expect(await handler.answer("tasks/result", { taskId: "one.1" }, earlier)).toMatchObject({
    _meta: { "io.modelcontextprotocol/related-task": { taskId: "one.1" } },
  });
  expect(ended[0]).toBe("one tasks/result  completed  false");
  expect(ended[1]).toBe("one tools/call work completed  false");
});

test("requests no task of one revision for a client of another, and refuses clients without tasks", async () => {
  const modern = tasking();
  await made(modern.handler, callOf({ isAskable: true })).catch(() => {});
  const [, reported] = modern.link.exchanges.map(({ clientCapabilities }) => clientCapabilities);
  expect(reported).toEqual({ sampling: {}, extensions: {} });
  const legacy = tasking({}, true);
  await made(legacy.handler, callOf(), { task: {} }).catch(() => {});
  expect(legacy.link.asked.find(({ method }) => method === "tools/call")?.params).not.toHaveProperty("task");
  await expect(
    modern.handler.answer("tasks/get", { taskId: "one.1" }, callOf({ capabilities: {} })),
  ).rejects.toMatchObject({
    code: -32_021,
    data: { requiredCapabilities: knowing },
  });
});

test("counts a task's parameters for its key until the task has ended, and cancels one that does not fit", async () => {
  const { handler, link } = tasking();
  const ledger = new BufferedBytes(1_000_000);
  const memoryAccount = ledger.memoryAccount(new AccountMemory());
  const large = { arguments: { text: "x".repeat(100_000) } };
  await made(handler, callOf({ memoryAccount }), large);
  expect(memoryAccount.total).toBeWithin(100_000, 101_000);
  link.changed("notifications/tasks", { taskId: "1", status: "completed", result: {} });
  await Bun.sleep(1);
  expect(memoryAccount.total).toBe(0);
  ledger.maxBytes = 100_000;
  await expect(made(handler, callOf({ memoryAccount }), large)).rejects.toThrow("the most that they may");
  await Bun.sleep(1);
  expect(link.asked.at(-1)).toEqual({ method: "tasks/cancel", params: { taskId: "2" } });
  await handler.close();
});

test("cancels an awaited task after the maximum duration of a call", async () => {
  const answer = (method: string, { taskId }: JsonObject): ToolAnswer => {
    const task = { taskId: taskId ?? "1", status: "working", pollInterval: 0 };
    return { result: method === "tools/call" ? { task } : task };
  };
  const alone = { name: "work", inputSchema: { type: "object" }, execution: { taskSupport: "required" } };
  const link = new TestLink(serving([alone], answer), { isLegacy: true, capabilities: { tools: {}, tasks: {} } });
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const { handler, ended } = handlerFor([[mcpServerFor("one"), link]], { clock });
  const call = made(handler, callOf({ isAskable: true }));
  await until(() => link.asked.at(-1)?.method === "tasks/get", "it is asked for");
  nowMs = 600_000;
  await expect(call).rejects.toMatchObject({ data: { code: "upstream_timeout" } });
  expect(link.asked[1]).toMatchObject({ method: "tools/call", params: { task: { ttl: 600_000 } } });
  expect(link.asked.at(-1)).toEqual({ method: "tasks/cancel", params: { taskId: "1" } });
  expect(ended).toEqual(["one tools/call work failed upstream_timeout false"]);
});
