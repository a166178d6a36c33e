// Tests where errors of model servers, and of gateways in front of them, hold the reason.
import { expect, test } from "bun:test";
import { reportedReason } from "./reported-reason.ts";

const loc = ["body", "messages", 0, "content"];
const placed = { message: "messages[0].content: Field required", place: "messages[0].content" };
const nested = JSON.stringify({ error: { message: "too many images", param: "messages" } });

test.each<[string, unknown, { message?: string; place?: string }]>([
  ["OpenAI", { error: { message: "no", param: "tools[0]", code: null } }, { message: "no", place: "tools[0]" }],
  ["Anthropic", { type: "error", error: { type: "invalid_request_error", message: "no" } }, { message: "no" }],
  ["FastAPI", { detail: [{ type: "missing", loc, msg: "Field required" }] }, placed],
  ["FastAPI, its own words", { detail: "no such adapter" }, { message: "no such adapter" }],
  ["FastAPI, an object", { detail: { error: "no", code: 4 } }, { message: "no" }],
  ["Mistral", { object: "error", message: { detail: [{ loc, msg: "Field required" }] } }, placed],
  ["vLLM", { object: "error", message: "no", param: null, code: 400 }, { message: "no" }],
  ["Gemini", [{ error: { code: 400, message: "no", status: "INVALID_ARGUMENT" } }], { message: "no" }],
  [
    "Google, with details",
    { error: { message: "no", details: [{ fieldViolations: [{ field: "contents[0].parts", description: "bad" }] }] } },
    { message: "no", place: "contents[0].parts" },
  ],
  ["a text", { error: "no" }, { message: "no" }],
  ["a message", { message: "no" }, { message: "no" }],
  ["NestJS", { statusCode: 400, message: ["a", "b"], error: "Bad Request" }, { message: "a; b" }],
  [
    "Fastify",
    { statusCode: 400, error: "Bad Request", message: "body/messages must be array" },
    { message: "body/messages must be array" },
  ],
  ["errors as texts", { errors: ["a", "b", "a"] }, { message: "a; b" }],
  [
    "errors as objects",
    { errors: [{ message: "no", path: ["messages", "1"] }] },
    { message: "messages[1]: no", place: "messages[1]" },
  ],
  [
    "JSON:API",
    { errors: [{ detail: "no", source: { pointer: "/messages/0/content" } }] },
    { message: "messages[0].content: no", place: "messages[0].content" },
  ],
  [
    "ASP.NET",
    { title: "One or more validation errors occurred.", errors: { messages: ["is required"] } },
    { message: "messages: is required", place: "messages" },
  ],
  ["RFC 9457", { type: "about:blank", title: "Bad Request", detail: "no", status: 400 }, { message: "no" }],
  ["OAuth", { error: "invalid_request", error_description: "no" }, { message: "no" }],
  ["Apigee", { fault: { faultstring: "no", detail: { errorcode: "x" } } }, { message: "no" }],
  [
    "OpenRouter",
    { error: { message: "Provider returned error", metadata: { raw: nested } } },
    { message: "too many images", place: "messages" },
  ],
  ["a body in a text", { message: nested }, { message: "too many images", place: "messages" }],
  ["nothing", { error: {} }, {}],
  ["null", { error: { message: null } }, {}],
])("finds the reason of %s", (_name, body, expected) => {
  for (const text of [
    JSON.stringify(body),
    `\ufeff ${JSON.stringify(body, null, 2)}\n`,
    `event: error\ndata: ${JSON.stringify(body)}\n\n`,
  ]) {
    const { message, place } = reportedReason(text);
    expect({ message, place }).toEqual({ message: undefined, place: undefined, ...expected });
  }
});

test("reads plain text as the reason, and none from markup", () => {
  expect(reportedReason("messages[0]: missing field `role`\n").message).toBe("messages[0]: missing field `role`");
  for (const text of ["", " ", "<html>no</html>", '{"error":', "["]) expect(reportedReason(text)).toEqual({});
});

test("reads the first of many reasons, and none that is wrapped endlessly", () => {
  const detail = Array.from({ length: 20 }, (_, n) => ({ loc: ["body", "n", n], msg: "bad" }));
  expect(reportedReason(JSON.stringify({ detail })).message).toBe("n[0]: bad; n[1]: bad; n[2]: bad");
  let body: unknown = "deep";
  for (let depth = 0; depth < 2_000; depth++) body = { error: body };
  expect(reportedReason(JSON.stringify(body)).message).toBeUndefined();
});
