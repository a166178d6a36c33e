// Tests who is blamed for an error in an answer of status 200.
import { describe, expect, test } from "bun:test";
import { BlamelessError } from "../../base/errors.ts";
import { hasFault, missingIn, reportedCode, reportedFault, unpaidReason } from "./engine-fault.ts";

const engine = { redact: (text: string) => text.replace("KEY", "[key]") };
const reported = (error: unknown) => reportedFault(JSON.stringify({ error }), engine, "It failed.");

describe("an error that a model server reports", () => {
  test.each([
    ["by a code", { code: "content_filter", message: "Stopped." }],
    ["in OpenAI's words", { message: "This model's maximum context length is 8 tokens." }],
    ["in Anthropic's words", { type: "invalid_request_error", message: "prompt is too long: 9 tokens > 8 maximum" }],
    ["in Gemini's words", { message: "The input token count (9) exceeds the maximum number of tokens allowed (8)." }],
  ])("does not blame the server for the request error %s", (_, error) => {
    const fault = reported(error);
    expect(fault).toBeInstanceOf(BlamelessError);
    expect(fault).toMatchObject({ code: "invalid_request", message: error.message });
    expect(reportedCode(fault)).toBe(fault.engineCode ?? "none");
  });

  test.each([
    "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    "Requested token count exceeds the model's maximum context length of 64000 tokens.",
    "The decoder prompt (length 12324) is longer than the maximum model length of 8192.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "the request exceeds the available context size, try increasing it",
    "Your input exceeds the context window of this model.",
    "the input length exceeds the context length",
    "invalid params, context window exceeds limit (2013)",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Input is too long for requested model.",
    "Range of input length should be [1, 129024]",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` tokens and 20 `max_new_tokens`",
    "`inputs` must have less than 512 tokens. Given: 600",
  ])("recognises a prompt that is too long in a vendor's words: %s", (message) => {
    expect(reportedCode(reported({ message, type: "BadRequestError", code: 400 }))).toBe("context_length_exceeded");
  });

  test.each([
    "max_tokens is longer than allowed: 9 > 8",
    "The length of the message's name exceeds the maximum length of 64.",
    "Rate limit exceeded: too many tokens per minute.",
    "stop: must have less than 5 items",
  ])("does not take another limit for that of the context: %s", (message) => {
    expect(reportedCode(reported({ message, type: "BadRequestError" }))).not.toBe("context_length_exceeded");
  });

  test.each([
    ...["invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "invalid_image_mode"],
    ...["image_too_large", "image_too_small", "image_parse_error", "image_content_policy_violation"],
    ...["image_file_too_large", "image_file_not_found", "unsupported_image_media_type", "empty_image_file"],
    "failed_to_download_image",
  ])("does not blame the server for a faulty image, reported as %s", (code) => {
    const fault = reported({ code, message: "No image." });
    expect(fault).toBeInstanceOf(BlamelessError);
    expect(fault).toMatchObject({ code: "invalid_request", message: "No image." });
    expect(reportedCode(fault)).toBe("invalid_request");
  });

  test.each<[unknown, string]>([
    [{ type: "overloaded_error", message: "Wait." }, "service_unavailable"],
    [{ code: "slow_down", message: "Wait." }, "service_unavailable"],
    [{ code: 503, message: "Wait." }, "service_unavailable"],
    [{ type: "rate_limit_error", message: "Wait." }, "rate_limit_exceeded"],
    [{ code: "rate_limit_exceeded", message: "Wait." }, "rate_limit_exceeded"],
    [{ code: 429, message: "Wait." }, "rate_limit_exceeded"],
  ])("reports overload as a temporary error: %j", (error, code) => {
    const fault = reported(error);
    expect(fault).toMatchObject({ code: "service_unavailable", message: "Wait." });
    expect(reportedCode(fault)).toBe(code);
  });

  test("blames the server for a used-up account, and reports no rate limit", () => {
    const fault = reported({ code: "insufficient_quota", type: "insufficient_quota", message: "Check your plan." });
    expect(fault).toMatchObject({ code: "upstream_error", message: unpaidReason });
    expect(reportedCode(fault)).toBe("upstream_error");
  });

  test("blames the server for any other error, in its own words without secrets", () => {
    expect(reported({ message: "KEY is wrong" })).toMatchObject({ code: "upstream_error", message: "[key] is wrong" });
    expect(reported("KEY")).toMatchObject({ code: "upstream_error", message: "[key]" });
    expect(reported({})).toMatchObject({ code: "upstream_error", message: "It failed." });
    const { code, message } = reportedFault('{"error":"KEY"}', undefined, "It failed.");
    expect({ code, message }).toEqual({ code: "upstream_error", message: "It failed." });
  });
});

describe("what a 404 reports as missing", () => {
  test.each<[string, unknown]>([
    ["model", { object: "error", message: "The model `m` does not exist.", type: "NotFoundError", code: 404 }],
    ["model", { error: { message: "Not here", code: "model_not_found" } }],
    ["model", { type: "error", error: { type: "not_found_error", message: "model: claude-1" } }],
    ["object", { error: { message: "Item 'rs_1' not found.", type: "invalid_request_error", param: "input" } }],
    [
      "object",
      { error: { message: "Item 'model /v1/responses' not found.", type: "invalid_request_error", param: "input" } },
    ],
    ["endpoint", { detail: "Not Found" }],
    ["endpoint", { error: { code: 404, message: "File Not Found", type: "not_found_error" } }],
    ["endpoint", { error: { message: "Invalid URL (POST /v1/x)", type: "invalid_request_error", param: null } }],
    [
      "endpoint",
      {
        error: {
          message: "This is a chat model and not supported in the v1/completions endpoint.",
          ...{ type: "invalid_request_error", param: "model" },
        },
      },
    ],
    ["endpoint", { status: 404, error: "Not Found", path: "/v1/completions" }],
    ["unknown", {}],
  ])("finds that the %s is missing in %j", (what, body) => {
    expect(missingIn(JSON.stringify(body), () => false)).toBe(what as ReturnType<typeof missingIn>);
  });

  const anthropicFile = { type: "not_found_error", message: "File not found: file_011CN" };
  const vectorStore = {
    type: "invalid_request_error",
    message: "Vector store with id [vs_1a2b] not found.",
    param: null,
  };
  const container = { type: "invalid_request_error", message: "Container with id 'cntr_1a2b' not found.", param: null };
  test.each([
    [anthropicFile, "file_011CN"],
    [vectorStore, "vs_1a2b"],
    [container, "cntr_1a2b"],
  ])("finds that the object is missing in %j if the request names it", (error, id) => {
    expect(missingIn(JSON.stringify({ error }), (asked) => asked === id)).toBe("object");
    expect(missingIn(JSON.stringify({ error }), () => false)).toBe("endpoint");
  });

  test("finds that the model or the endpoint is missing, whatever else of the message is in the request", () => {
    for (const [message, what] of [
      ["The model llama-3 does not exist.", "model"],
      ["No endpoints found that support the provided 'tool_choice' value.", "endpoint"],
      ["Invalid URL (POST /v1/chat-x/responses)", "endpoint"],
    ] as const) {
      expect(missingIn(JSON.stringify({ error: { message, type: "invalid_request_error" } }), () => true)).toBe(what);
    }
  });

  test.each(["", "404 page not found", "<html>404</html>"])("finds nothing certain about a 404 in %j", (text) => {
    expect(missingIn(text, () => true)).toBe("unknown");
  });
});

describe("an object in place of an answer", () => {
  const reported = [
    ...[{ code: 200, message: "success" }, { status: "ok", message: "" }, { errors: [] }, { detail: "ok" }],
    ...[{ success: false }, { code: 500, message: "slow" }],
  ];

  test.each(reported)("finds an error beside a filled list, whatever else the object holds: %j", (more) => {
    expect(hasFault({ object: "list", data: [{ embedding: [1] }], ...more }, "data")).toBe(false);
    expect(hasFault({ object: "response", output: [{ type: "message" }], ...more })).toBe(false);
    expect(hasFault({ content: [{ type: "text" }], ...more })).toBe(false);
    expect(hasFault({ choices: [{ index: 0 }], ...more })).toBe(false);
  });

  test.each([
    { detail: "no" },
    { detail: [{ msg: "no" }] },
    { errors: ["no"] },
    { success: false },
    { code: 500, message: "no" },
    { code: null, message: "no" },
    { code: 200, status: "failed", message: "no" },
  ])("finds an error without a list, or beside an empty one: %j", (fault) => {
    expect(hasFault(fault)).toBe(true);
    expect(hasFault({ data: [], ...fault }, "data")).toBe(true);
    expect(hasFault({ data: ["a trace"], ...fault })).toBe(true);
  });

  test.each([{ error: "no" }, { object: "error", message: "no" }, { type: "error" }])(
    "finds an error beside any list: %j",
    (fault) => {
      expect(hasFault({ data: [1], ...fault }, "data")).toBe(true);
    },
  );

  test.each([
    { code: 200, message: "success" },
    { code: 0, message: "" },
    { code: "0", status: "SUCCESS", message: "" },
    { errors: [], message: "Hello" },
  ])("finds no error in a message with a success code: %j", (said) => {
    expect(hasFault(said)).toBe(false);
  });
});
