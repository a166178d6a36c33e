// What clients get of a response over several turns, and what models are told of tools of servers.
import { describe, expect, test } from "bun:test";
import { askedServers, type HostedTool, needsApproval } from "./asked-servers.ts";
import { listItem, readHostedItems } from "./hosted-items.ts";
import { HostedResponse } from "./hosted-response.ts";
import { functionName, OfferedTools } from "./offered-tools.ts";

const look: HostedTool = { name: "look", description: "Looks.", inputSchema: { type: "object" }, isReadOnly: true };
const write: HostedTool = { name: "write", inputSchema: { type: "object" }, isReadOnly: false };

function request(tool: Record<string, unknown> = {}, more: Record<string, unknown> = {}) {
  return { model: "m", input: "Hi", tools: [{ type: "mcp", server_label: "files", ...tool }], ...more };
}

function offer(asked: Record<string, unknown>): OfferedTools {
  const [server] = askedServers(asked);
  if (!server) throw new Error("no server");
  return new OfferedTools([[server, [look, write]]], []);
}

type Event = Record<string, unknown> & { type: string };

function eventsOf(text: string): Event[] {
  return text
    .split("\n\n")
    .filter((part) => part !== "")
    .map((part) => JSON.parse(part.slice(part.indexOf("data: ") + 6)) as Event);
}

const call = { id: "fc_1", type: "function_call", call_id: "c1", name: "files__look", arguments: '{"at":"x"}' };
const answer = { id: "msg_1", type: "message", role: "assistant", content: [{ type: "output_text", text: "It is." }] };
const usage = { input_tokens: 10, output_tokens: 2, output_tokens_details: { reasoning_tokens: 1 }, total_tokens: 12 };

function turn(output: readonly Record<string, unknown>[], id: string) {
  return { id, object: "response", created_at: 7, model: "m", status: "completed", output, usage };
}

describe("a response over turns", () => {
  test("is one: begun once, numbered through, its items in one output, and the usage of all turns at its end", () => {
    const asked = request({ require_approval: "never", headers: { authorization: "secret" } });
    const response = new HostedResponse({ offered: offer(asked), request: asked, members: { store: false } });
    response.tellList(listItem("files", [look, write]));
    let text = "";
    response.beginTurn();
    const first = turn([call], "resp_1");
    text += response.take({ type: "response.created", response: { ...first, status: "in_progress", output: [] } });
    for (const type of ["response.output_item.added", "response.output_item.done"])
      text += response.take({ type, output_index: 0, item: call });
    text += response.take({ type: "response.completed", response: first });
    const [made] = response.calls;
    if (!made) throw new Error("no call");
    expect(made).toMatchObject({ callId: "c1", arguments: '{"at":"x"}' });
    text += response.endCall(made, { output: "there", error: undefined });
    response.beginTurn();
    const second = turn([answer], "resp_2");
    text += response.take({ type: "response.created", response: second });
    for (const type of ["response.output_item.added", "response.output_item.done"])
      text += response.take({ type, output_index: 0, item: answer });
    text += response.take({ type: "response.completed", response: second });
    text += response.end();
    const events = eventsOf(text);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
    expect(events.map(({ type }) => type.replace("response.", ""))).toEqual([
      ...["created", "output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed", "output_item.done"],
      ...["output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done"],
      ...["mcp_call.completed", "output_item.done", "output_item.added", "output_item.done", "completed"],
    ]);
    const last = events.at(-1)?.["response"] as Record<string, unknown>;
    expect(last).toMatchObject({
      ...{ id: "resp_1", status: "completed", store: false },
      output: [
        { type: "mcp_list_tools", server_label: "files" },
        { type: "mcp_call", name: "look", output: "there", status: "completed", error: null },
        answer,
      ],
      usage: { input_tokens: 20, output_tokens: 4, output_tokens_details: { reasoning_tokens: 2 }, total_tokens: 24 },
    });
    expect(text).not.toContain("secret");
  });

  test("asks its client before a call that needs that, and does not go on by itself", () => {
    const asked = request();
    const response = new HostedResponse({ offered: offer(asked), request: asked, members: {} });
    response.beginTurn();
    response.takeWhole(turn([call], "resp_1"));
    expect(response.calls).toEqual([]);
    expect(response.waitsForClient).toBe(true);
    expect(response.whole["output"]).toMatchObject([
      { type: "mcp_approval_request", server_label: "files", name: "look", arguments: '{"at":"x"}' },
    ]);
  });

  test("waits for its client where the model calls a function of the client's own as well", () => {
    const asked = request({ require_approval: "never" });
    const response = new HostedResponse({ offered: offer(asked), request: asked, members: {} });
    response.beginTurn();
    response.takeWhole(turn([call, { ...call, id: "fc_2", call_id: "c2", name: "mine" }], "resp_1"));
    expect(response.calls.map(({ callId }) => callId)).toEqual(["c1"]);
    expect(response.waitsForClient).toBe(true);
  });

  test("gives what a model thought sealed only to a client that asked for it", () => {
    const thought = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "x" };
    for (const include of [[], ["reasoning.encrypted_content"]]) {
      const asked = request({}, { include });
      const response = new HostedResponse({ offered: offer(asked), request: asked, members: {} });
      response.beginTurn();
      response.takeWhole(turn([thought], "resp_1"));
      const [item] = response.whole["output"] as Record<string, unknown>[];
      expect(item && "encrypted_content" in item).toBe(include.length > 0);
    }
  });
});

describe("tools of servers", () => {
  test("are offered as functions by names that every server of models takes, and of no two tools the same", () => {
    expect(functionName("files", "look")).toBe("files__look");
    const long = "x".repeat(80);
    const names = [
      functionName("a", long),
      functionName("a", `${long}y`),
      functionName("a", "b.c"),
      functionName("a", "b c"),
    ];
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(new Set(names).size).toBe(names.length);
  });

  test("are those alone that the request allows, and are asked for where it says so", () => {
    const names = (tool: Record<string, unknown>) =>
      offer(request(tool))
        .asFunctions([])
        .map(({ name }) => name);
    expect(names({})).toEqual(["files__look", "files__write"]);
    expect(names({ allowed_tools: ["write"] })).toEqual(["files__write"]);
    expect(names({ allowed_tools: { read_only: true } })).toEqual(["files__look"]);
    const approvals = (require_approval: unknown) => {
      const [server] = askedServers(request({ require_approval }));
      return server && [look, write].map((tool) => needsApproval(server, tool));
    };
    expect(approvals(undefined)).toEqual([true, true]);
    expect(approvals("never")).toEqual([false, false]);
    expect(approvals({ never: { read_only: true } })).toEqual([false, true]);
    expect(approvals({ never: { tool_names: ["write"] }, always: { tool_names: ["write"] } })).toEqual([true, true]);
  });

  test("what is asked for wrongly is refused by its place", () => {
    for (const [tool, place] of [
      [{ server_label: "1 2" }, "tools[0].server_label"],
      [{ allowed_tools: 3 }, "tools[0].allowed_tools"],
      [{ require_approval: "perhaps" }, "tools[0].require_approval"],
      [{ require_approval: { never: { tool_names: "x" } } }, "tools[0].require_approval.never.tool_names"],
    ] as const) {
      expect(() => askedServers(request(tool))).toThrow(expect.objectContaining({ param: place }));
    }
    expect(() => offer({ tools: [] })).toThrow();
  });
});

test("a conversation with items of servers is told to models as calls of functions, decided ones last", () => {
  const list = listItem("files", [look]);
  const read = readHostedItems([
    { role: "user", content: "Hi" },
    list,
    { type: "mcp_call", id: "mcp_1", server_label: "files", name: "look", arguments: "{}", output: "there" },
    { type: "mcp_approval_request", id: "mcpr_1", server_label: "files", name: "write", arguments: '{"a":1}' },
    { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: false, reason: "Not now." },
  ]);
  expect(read.items).toEqual([
    { role: "user", content: "Hi" },
    { type: "function_call", call_id: "mcp_1", name: "files__look", arguments: "{}" },
    { type: "function_call_output", call_id: "mcp_1", output: "there" },
  ]);
  expect(read.decided).toEqual([
    {
      ...{ requestId: "mcpr_1", label: "files", name: "write", arguments: '{"a":1}' },
      ...{ approve: false, reason: "Not now." },
    },
  ]);
  expect([...read.lists.keys()]).toEqual(["files"]);
});
