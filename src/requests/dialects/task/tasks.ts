// Lists the tasks. Each entry describes the request, the answer and the usage of one task. Tasks with files or streams
// are in other files.
import { decision, decisionRequest } from "../../../wire/tasks/decision.ts";
import { moderationRequest, moderationResult } from "../../../wire/tasks/moderation.ts";
import { rerankRequest, rerankResult, scoreRequest, scoreResult } from "../../../wire/tasks/rerank.ts";
import { countOf, detailsOf } from "../reported-parts.ts";
import { usageOf } from "../response/reply-reader.ts";
import { image, imageEdit, imageVariation } from "./image-tasks.ts";
import { speech, transcription, translation } from "./sound-tasks.ts";
import { type Json, jsonTask, type Task } from "./task.ts";
import { detokenize, tokenize } from "./tokens.ts";

const nothing: Json = {};
/** Maximum number of tokens in the answer to one question: names, values and their probabilities. */
const tokensOfAnswer = 256;
/** Number of documents that one search unit covers (Cohere, "How does pricing work for Rerank?"). */
const documentsOfUnit = 100;
const [firsts, seconds] = [
  ["text_1", "data_1", "queries", "query"],
  ["text_2", "data_2", "documents", "items"],
];

const rerank: Task = {
  ...jsonTask,
  operation: "rerank",
  endpoint: "reranking",
  capability: "rerank",
  paths: ["/v1/rerank", "/v2/rerank"],
  doc: {
    operationId: "rerank",
    summary: "Rank documents by a query",
    description:
      "Cohere's and Jina's request, as vLLM, llama-server and others have it. It is counted in tokens, documents and search units.",
    example: { model: "reranker", query: "What is a headrace?", documents: ["A channel.", "A race."], top_n: 1 },
    answerDescription: "The documents, the best first.",
  },
  schema: rerankRequest,
  answer: rerankResult,
  promptMember: "documents",
  shownMembers: ["query", "documents"],
  repeated: ["query"],
  readings: ({ documents }) => itemsIn(documents),
  answerTokens: () => 0,
  units: ({ documents }) => unitsOf(itemsIn(documents)),
  answerMembers: { results: "items", data: "items" },
  usage(answer) {
    const billed = memberOf(memberOf(answer, "meta"), "billed_units");
    const searchUnits = countOf(billed["search_units"]);
    const reported = promptUsage(answer);
    return {
      promptTokens: reported ?? countOf(memberOf(memberOf(answer, "meta"), "tokens")["input_tokens"]),
      details: detailsOf({ searchUnits }),
    };
  },
};

const score: Task = {
  ...jsonTask,
  operation: "score",
  endpoint: "scores",
  capability: "rerank",
  paths: ["/v1/score"],
  doc: {
    operationId: "score",
    summary: "Compare texts",
    description:
      "vLLM's request, or SGLang's. One text is compared with each of several, or each of some with its own.",
    example: { model: "reranker", text_1: "What is a headrace?", text_2: ["A channel.", "A race."] },
    answerDescription: "A score for each pair, in order.",
  },
  schema: scoreRequest,
  answer: scoreResult,
  promptMember: "text_2",
  shownMembers: [...firsts, ...seconds],
  repeated: firsts,
  readings: (body) => (itemsOf(body, firsts) === 1 ? itemsOf(body, seconds) : 1),
  answerTokens: () => 0,
  units: (body) => unitsOf(itemsOf(body, seconds)),
  answerMembers: { data: "items", scores: "items" },
  usage: (answer) => ({ promptTokens: promptUsage(answer) }),
};

const moderation: Task = {
  ...jsonTask,
  operation: "moderation",
  endpoint: "moderations",
  capability: "moderation",
  paths: ["/v1/moderations"],
  doc: {
    operationId: "createModeration",
    summary: "Tell what in a text or an image is harmful",
    description: "Servers tell no usage of it: its tokens are estimated from the input.",
    example: { model: "moderator", input: "I want to hug them." },
    answerDescription: "A result for each input.",
  },
  schema: moderationRequest,
  answer: moderationResult,
  promptMember: "input",
  shownMembers: ["input"],
  repeated: [],
  readings: () => 1,
  answerTokens: () => 0,
  units: () => undefined,
  answerMembers: { results: "items" },
  usage: (answer) => ({ promptTokens: promptUsage(answer) }),
};

const decisions: Task = {
  ...jsonTask,
  operation: "decision",
  endpoint: "decisions",
  capability: "decisions",
  paths: ["/v1/decisions"],
  doc: {
    operationId: "createDecision",
    summary: "Ask typed questions about an input",
    example: {
      model: "decider",
      input: "My card was charged twice.",
      questions: [{ type: "predicate", name: "billing", instructions: "Is it about money?" }],
    },
    answerDescription: "An answer for each question.",
  },
  schema: decisionRequest,
  answer: decision,
  promptMember: "input",
  shownMembers: ["input", "questions"],
  // The model reads the input once for each question, unless the server reads it once for all questions. In that case,
  // the usage that the server reports counts.
  repeated: ["input"],
  readings: ({ questions }) => itemsIn(questions),
  answerTokens: ({ questions }) => tokensOfAnswer * itemsIn(questions),
  units: () => undefined,
  answerMembers: { answers: "items" },
  usage: (answer) => usageOf(answer["usage"], answer),
};

export const tasks: readonly Task[] = [
  ...[rerank, score, moderation, decisions],
  ...[speech, transcription, translation],
  ...[image, imageEdit, imageVariation],
  ...[tokenize, detokenize],
];

/** Returns the tokens of the prompt. Jina and vLLM report only the total, which is equal to the prompt tokens. */
function promptUsage(answer: Json): number | undefined {
  const usage = memberOf(answer, "usage");
  return countOf(usage["prompt_tokens"]) ?? countOf(usage["total_tokens"]) ?? countOf(usage["input_tokens"]);
}

function unitsOf(documents: number) {
  return { documents, searchUnits: Math.ceil(documents / documentsOfUnit) };
}

function itemsIn(value: unknown): number {
  return Array.isArray(value) ? Math.max(1, value.length) : 1;
}

/** Returns the number of items in the first of these members that the body has. */
function itemsOf(body: Json, names: readonly string[]): number {
  const name = names.find((one) => body[one] !== undefined);
  return name === undefined ? 1 : itemsIn(body[name]);
}

function memberOf(value: Json, name: string): Json {
  const member = value[name];
  return typeof member === "object" && member !== null && !Array.isArray(member) ? (member as Json) : nothing;
}
