// Tests what clients get of a response with several turns, and what models get of MCP tools.
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

const begun = { id: "resp_1", object: "response", created_at: 7, model: "m", status: "in_progress", output: [] };

function turn(output: readonly Record<string, unknown>[], id: string) {
  return { id, object: "response", created_at: 7, model: "m", status: "completed", output, usage };
}

describe("a response over several model turns", () => {
  test("joins turns into one response with one beginning, one output, consecutive numbers and summed usage", () => {
    const asked = request({ require_approval: "never", headers: { authorization: "secret" } });
    const response = new HostedResponse({ offered: offer(asked), request: asked, members: { store: false }, begun });
    response.addList(listItem("files", [look, write]));
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

  test("asks the client before a call that needs approval, and does not continue by itself", () => {
    const asked = request();
    const response = new HostedResponse({ offered: offer(asked), request: asked, members: {}, begun });
    response.beginTurn();
    response.takeWhole(turn([call], "resp_1"));
    expect(response.calls).toEqual([]);
    expect(response.waitsForClient).toBe(true);
    expect(response.whole["output"]).toMatchObject([
      { type: "mcp_approval_request", server_label: "files", name: "look", arguments: '{"at":"x"}' },
    ]);
  });

  test("waits for the client if the model also calls a client function", () => {
    const asked = request({ require_approval: "never" });
    const response = new HostedResponse({ offered: offer(asked), request: asked, members: {}, begun });
    response.beginTurn();
    response.takeWhole(turn([call, { ...call, id: "fc_2", call_id: "c2", name: "mine" }], "resp_1"));
    expect(response.calls.map(({ callId }) => callId)).toEqual(["c1"]);
    expect(response.waitsForClient).toBe(true);
  });

  test("returns sealed reasoning only to a client that asked for it", () => {
    const thought = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "x" };
    for (const include of [[], ["reasoning.encrypted_content"]]) {
      const asked = request({}, { include });
      const response = new HostedResponse({ offered: offer(asked), request: asked, members: {}, begun });
      response.beginTurn();
      response.takeWhole(turn([thought], "resp_1"));
      const [item] = response.whole["output"] as Record<string, unknown>[];
      expect(item && "encrypted_content" in item).toBe(include.length > 0);
    }
  });
});

describe("the end of a response", () => {
  const asked = request({ require_approval: "never" });
  const made = () => new HostedResponse({ offered: offer(asked), request: asked, members: {}, begun });

  test("marks a call that was not made before the end, and leaves no gap in the output", () => {
    const response = made();
    response.beginTurn();
    for (const type of ["response.created", "response.in_progress"]) response.take({ type, response: begun });
    for (const type of ["response.output_item.added", "response.output_item.done"])
      response.take({ type, output_index: 0, item: call });
    response.take({ type: "response.output_item.added", output_index: 1, item: answer });
    response.take({ type: "response.incomplete", response: { ...turn([], "resp_1"), status: "incomplete" } });
    const events = eventsOf(response.end());
    expect(events.map(({ type }) => type)).toEqual([
      ...["response.mcp_call.failed", "response.output_item.done", "response.incomplete"],
    ]);
    expect(response.whole["output"]).toMatchObject([{ type: "mcp_call", status: "failed", output: null }]);
  });

  test("begins a response that fails before the first turn, with its earlier calls", () => {
    const response = made();
    response.addList(listItem("files", [look]));
    const item = { id: "mcp_1", type: "mcp_call", status: "in_progress", name: "look", arguments: "{}" };
    response.addApproved(item, { output: "there", error: undefined });
    response.beginTurn();
    response.fail("rate_limit_exceeded", "Later.");
    const events = eventsOf(response.end());
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
    expect(events[0]?.type).toBe("response.created");
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: {
        ...{ id: "resp_1", status: "failed", error: { code: "rate_limit_exceeded", message: "Later." } },
        output: [{ type: "mcp_list_tools" }, { type: "mcp_call", output: "there" }],
      },
    });
  });

  test("reports an error of a later turn as the failure of the client's response", () => {
    const response = made();
    response.beginTurn();
    response.takeWhole(turn([call], "resp_1"));
    response.beginTurn();
    expect(response.take({ type: "error", code: "server_is_overloaded", message: "Full." })).toBe("");
    expect(response.hasEnded).toBe(true);
    expect(eventsOf(response.end()).at(-1)).toMatchObject({
      ...{ type: "response.failed", response: { error: { code: "server_is_overloaded", message: "Full." } } },
    });
  });
});

describe("MCP tools", () => {
  test("offers MCP tools as functions with unique names that every model server accepts", () => {
    expect(functionName("files", "look")).toBe("files__look");
    const long = "x".repeat(80);
    const names = [
      functionName("a", long),
      functionName("a", `${long}y`),
      functionName("a", "b.c"),
      functionName("a", "b c"),
      functionName("a", "b__c"),
      functionName("a__b", "c"),
      functionName("a", "_c"),
      functionName("a_", "c"),
    ];
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(new Set(names).size).toBe(names.length);
  });

  test("offers only the tools that the request allows, and asks for approval as it says", () => {
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

  test("offers tools with schemas that strict model servers accept", () => {
    const schemas = offer(request({})).asFunctions([]);
    for (const { parameters } of schemas) expect(parameters).toEqual({ type: "object", properties: {} });
    expect(schemas).toHaveLength(2);
  });

  test("refuses invalid server entries by their place", () => {
    for (const [tool, place] of [
      [{ server_label: "1 2" }, "tools[0].server_label"],
      [{ allowed_tools: 3 }, "tools[0].allowed_tools"],
      [{ allowed_tools: { names: ["look"] } }, "tools[0].allowed_tools"],
      [{ allowed_tools: { read_only: "true" } }, "tools[0].allowed_tools.read_only"],
      [{ require_approval: { never: {} } }, "tools[0].require_approval.never"],
      [{ require_approval: "perhaps" }, "tools[0].require_approval"],
      [{ require_approval: { never: { tool_names: "x" } } }, "tools[0].require_approval.never.tool_names"],
    ] as const) {
      expect(() => askedServers(request(tool))).toThrow(expect.objectContaining({ param: place }));
    }
    const many = Array.from({ length: 33 }, (_, index) => ({ type: "mcp", server_label: `s${index}` }));
    expect(() => askedServers({ tools: many })).toThrow(expect.objectContaining({ param: "tools" }));
    expect(() => offer({ tools: [] })).toThrow();
  });
});

describe("a conversation with MCP items", () => {
  const asks = {
    type: "mcp_approval_request",
    id: "mcpr_1",
    server_label: "files",
    name: "write",
    arguments: '{"a":1}',
  };
  const answers = (approve: boolean) => ({ type: "mcp_approval_response", approval_request_id: "mcpr_1", approve });
  const made = { type: "mcp_call", id: "mcp_2", server_label: "files", name: "write", approval_request_id: "mcpr_1" };

  test("writes MCP items as function calls, with refusals at their place", () => {
    const read = readHostedItems([
      { role: "user", content: "Hi" },
      listItem("files", [look]),
      { type: "mcp_call", id: "mcp_1", server_label: "files", name: "look", arguments: "{}", output: "there" },
      asks,
      { ...answers(false), reason: "Not now." },
      { role: "user", content: "Why?" },
    ]);
    expect(read.items).toEqual([
      { role: "user", content: "Hi" },
      { type: "function_call", call_id: "mcp_1", name: "files__look", arguments: "{}" },
      { type: "function_call_output", call_id: "mcp_1", output: "there" },
      { type: "function_call", call_id: "mcpr_1", name: "files__write", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "mcpr_1", output: "The user did not allow this call. Not now." },
      { role: "user", content: "Why?" },
    ]);
    expect(read.decided).toEqual([]);
    expect([...read.lists.keys()]).toEqual(["files"]);
  });

  test("makes an approved call once, however often it is approved, and not again later", () => {
    const call = { requestId: "mcpr_1", label: "files", name: "write", arguments: '{"a":1}' };
    expect(readHostedItems([asks, answers(true), answers(true)]).decided).toEqual([call]);
    const later = readHostedItems([
      asks,
      answers(true),
      { ...made, arguments: '{"a":1}', output: "done" },
      answers(true),
    ]);
    expect(later.decided).toEqual([]);
    expect(later.items).toHaveLength(2);
  });

  test("refuses an approval without a request, or with a changed decision", () => {
    for (const input of [
      [answers(true)],
      [answers(true), asks],
      [asks, { ...answers(true), approve: "yes" }],
      [asks, answers(false), answers(true)],
    ]) {
      expect(() => readHostedItems(input)).toThrow(expect.objectContaining({ param: "input" }));
    }
  });
});
