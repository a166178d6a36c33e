// Converts text to tokens, and tokens to text. Requests and answers have both vLLM's and llama-server's member names.
import { fieldError } from "../../../base/errors.ts";
import { detokenizeRequest, detokenizeResult, tokenizeRequest, tokenizeResult } from "../../../wire/tasks/tokens.ts";
import { malformed } from "../malformed.ts";
import { jsonTask, type Task } from "./task.ts";

/**
 * Members that both tasks have in common. Conversion between text and tokens costs nothing, because no model reads the
 * text.
 */
const uncounted = {
  ...jsonTask,
  capability: "tokenize",
  shownMembers: [],
  repeated: [],
  readings: () => 1,
  answerTokens: () => 0,
  units: () => undefined,
  usage: () => ({ promptTokens: 0 }),
} as const satisfies Partial<Task>;

export const tokenize: Task = {
  ...uncounted,
  operation: "tokenize",
  endpoint: "tokenizing",
  paths: ["/v1/tokenize"],
  doc: {
    operationId: "tokenize",
    summary: "Tell the tokens of a text",
    description:
      "vLLM's request (`prompt`, or `messages`), or llama-server's (`content`), whichever of them the model server knows. Nothing is generated, and no tokens are charged.",
    example: { model: "tiny-demo", prompt: "What is a headrace?" },
    answerDescription: "The tokens.",
  },
  schema: tokenizeRequest,
  answer: tokenizeResult,
  promptMember: "prompt",
  check(body) {
    const said = ["prompt", "content", "messages"].filter((name) => body[name] !== undefined);
    if (said.length === 0) {
      throw fieldError(
        "prompt",
        "is missing: send the text as `prompt` or `content`, or a conversation as `messages`.",
      );
    }
    if (body["messages"] !== undefined && said.length > 1) {
      throw fieldError("messages", `cannot be sent beside \`${said[0]}\`: one of them is made tokens of.`);
    }
    if (said.length === 2 && body["prompt"] !== body["content"]) {
      throw fieldError("content", "must be the same text as `prompt`, or be left out.");
    }
  },
  added(body) {
    const { prompt, content, add_special_tokens: ofVllm, add_special: ofLlama } = body;
    if (body["messages"] !== undefined) return undefined;
    const special = ofVllm ?? ofLlama ?? prompt !== undefined;
    const text = JSON.stringify(prompt ?? content);
    return {
      ...(prompt === undefined ? { prompt: text } : {}),
      ...(content === undefined ? { content: text } : {}),
      ...(typeof ofVllm === "boolean" ? {} : { add_special_tokens: String(special) }),
      ...(typeof ofLlama === "boolean" ? {} : { add_special: String(special) }),
    };
  },
  answerMembers: { tokens: "list" },
  completed(answer, body, context) {
    const { tokens, count, max_model_len: most } = answer;
    const isCounted = typeof count === "number";
    // The model server llama-server treats a request without text like one with an empty text.
    if (body["messages"] !== undefined && !isCounted) {
      throw malformed("no count: this server makes no tokens of messages");
    }
    return addedTo({
      ...(isCounted ? {} : { count: JSON.stringify((tokens as unknown[]).length) }),
      ...(most !== undefined || context === undefined ? {} : { max_model_len: String(context) }),
    });
  },
};

export const detokenize: Task = {
  ...uncounted,
  operation: "detokenize",
  endpoint: "detokenizing",
  paths: ["/v1/detokenize"],
  doc: {
    operationId: "detokenize",
    summary: "Tell the text of tokens",
    description:
      "The request of vLLM and llama-server; the text comes by the names that both have for it. Nothing is charged.",
    example: { model: "tiny-demo", tokens: [1, 2, 3] },
    answerDescription: "The text.",
  },
  schema: detokenizeRequest,
  answer: detokenizeResult,
  promptMember: "tokens",
  answerMembers: { prompt: "text", content: "text", text: "text" },
  completed(answer) {
    // In SGLang's answers, the member with the text has the name `text`.
    const { prompt, content, text } = answer;
    const said = JSON.stringify(prompt ?? content ?? text);
    return addedTo({
      ...(prompt === undefined ? { prompt: said } : {}),
      ...(content === undefined ? { content: said } : {}),
    });
  },
};

function addedTo(members: Readonly<Record<string, string>>): Readonly<Record<string, string>> | undefined {
  return Object.keys(members).length > 0 ? members : undefined;
}
