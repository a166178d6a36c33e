// Elicitations by URL: which of them reach a client, from servers of earlier and later revisions.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../../tests/support/principal.ts";
import { handlerFor, mcpServerFor, requestFrom, serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { JsonObject, ToolAnswer } from "../../domain/tools/client-session.ts";
import type { ClientCall } from "./client-call.ts";

const tools = [{ name: "ask", inputSchema: { type: "object" } }];
const openable = { elicitation: { url: {} } };

/** Returns the elicitations that the client received, and the result of the call. */
async function asked(
  params: JsonObject,
  capabilities: JsonObject,
  way: "session" | "round" | "error",
  isAskable = true,
) {
  const seen: JsonObject[] = [];
  const link = new TestLink(
    serving(tools, async (_method, { inputResponses }, { asked: ask }): Promise<ToolAnswer> => {
      if (way === "session") {
        const said = await ask?.("elicitation/create", params).catch((error: Error) => ({ refused: error.message }));
        return { result: { content: [], said } };
      }
      if (way === "error")
        return { error: { code: -32_042, message: "Open it.", data: { elicitations: params["instead"] ?? [params] } } };
      if (inputResponses !== undefined) return { result: { content: [] } };
      const inputRequests = { page: { method: "elicitation/create", params } };
      return { result: { resultType: "input_required", inputRequests } };
    }),
    { isLegacy: way !== "round" },
  );
  const { handler } = handlerFor([[mcpServerFor("one"), link]]);
  const call: ClientCall = {
    ...requestFrom(principalFor()),
    ...{ capabilities, isAskable, cancellation: new Cancellation(), notify: () => {} },
    ask: async (_method, reported) => {
      seen.push(reported);
      return { action: "accept" };
    },
  };
  const answer = await handler.answer("tools/call", { name: "one_ask" }, call).catch((error: unknown) => error);
  return { seen, reported: JSON.stringify(answer instanceof Error ? { ...answer, said: answer.message } : answer) };
}

const page = (url: unknown, more: JsonObject = {}) => ({
  mode: "url",
  message: "Open",
  url,
  elicitationId: "1",
  ...more,
});

describe.each(["session", "round", "error"] as const)("a URL elicitation in the form of a %s", (way) => {
  test.each(["https://example.com/pay?a=1", "http://127.0.0.1:8080/"])(
    "passes URL elicitations to a client that supports them: %s",
    async (url) => {
      const { seen, reported } = await asked(page(url), openable, way);
      expect(way === "error" ? reported : JSON.stringify(seen)).toContain(url);
    },
  );

  test.each([
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,<script>",
    "file:///etc/passwd",
    "ms-msdt:/id",
    "http://example.com/",
    "https://user:pass@example.com/",
    "//example.com",
    "",
    5,
    null,
  ])("refuses URL elicitations whose address is no https page: %p", async (url) => {
    for (const isAskable of [true, false]) {
      const { seen, reported } = await asked(page(url), openable, way, isAskable);
      expect(seen).toEqual([]);
      if (typeof url === "string" && url !== "") expect(reported).not.toContain(url.trim());
    }
  });

  test.each([{}, { elicitation: {} }, { elicitation: { form: {} } }])(
    "refuses URL elicitations for a client that declared %j",
    async (reported) => {
      for (const isAskable of [true, false]) {
        const answered = await asked(page("https://example.com/pay"), reported, way, isAskable);
        expect(answered.seen).toEqual([]);
        expect(answered.reported).not.toContain("example.com");
      }
    },
  );
});

test.each([
  [{ page: "javascript:alert(1)" }],
  ["javascript:alert(1)"],
  [["javascript:alert(1)"]],
  [[[page("javascript:alert(1)")]]],
])("refuses an error that requires URL elicitations if its list is invalid: %j", async (instead) => {
  const { reported } = await asked({ instead }, openable, "error");
  expect(reported).toContain("upstream_error");
  expect(reported).not.toContain("javascript");
});

test.each(["session", "round"] as const)("refuses an elicitation with an address and no mode (%s)", async (way) => {
  const { mode: _, ...params } = page("https://example.com/pay");
  const { seen, reported } = await asked(params, openable, way);
  expect(seen).toEqual([]);
  expect(reported).not.toContain("example.com");
});

test("passes form elicitations to the client", async () => {
  const form = { message: "Who?", requestedSchema: { type: "object", properties: {} } };
  for (const way of ["session", "round"] as const) {
    expect((await asked(form, { elicitation: {} }, way)).seen).toEqual([form]);
    expect((await asked({ ...form, mode: "form" }, { elicitation: { form: {} } }, way)).seen).toHaveLength(1);
  }
});
