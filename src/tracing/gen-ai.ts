// The attribute names of the OpenTelemetry conventions for generative AI, and the values from requests and answers. The
// names equal those of the incubating entry of @opentelemetry/semantic-conventions 1.45, which is too large to load for
// its constants.

import type { Attributes } from "@opentelemetry/api";
import type { Engine } from "../domain/models/engine.ts";
import type { TracedRequest } from "../domain/usage/trace.ts";
import { dialects } from "../requests/dialects/dialects.ts";

export const genAi = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  requestStream: "gen_ai.request.stream",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  timeToFirstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cachedTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  toolName: "gen_ai.tool.name",
} as const;

/** The attributes of OpenInference that Langfuse and Phoenix read: at the root of a trace, and the ids at each attempt. */
export const openInference = {
  spanKind: "openinference.span.kind",
  user: "user.id",
  session: "session.id",
  input: "input.value",
  inputType: "input.mime_type",
  output: "output.value",
  outputType: "output.mime_type",
} as const;

/** Numeric members of a request by attribute. If several members are listed, the first one in the request counts. */
const numbers: readonly (readonly [attribute: string, ...members: string[]])[] = [
  ["gen_ai.request.max_tokens", "max_completion_tokens", "max_tokens"],
  ["gen_ai.request.temperature", "temperature"],
  ["gen_ai.request.top_p", "top_p"],
  ["gen_ai.request.top_k", "top_k"],
  ["gen_ai.request.frequency_penalty", "frequency_penalty"],
  ["gen_ai.request.presence_penalty", "presence_penalty"],
  ["gen_ai.request.seed", "seed"],
  ["gen_ai.embeddings.dimension.count", "dimensions"],
];

/** Returns the parameters of a request as attributes, without any text of the client. */
export function requestAttributes({ operation, stream, body }: TracedRequest): Attributes {
  const dialect = dialects[operation];
  const attributes: Attributes = { [genAi.operation]: dialect.spanName };
  if (stream) attributes[genAi.requestStream] = true;
  for (const [attribute, ...members] of numbers) {
    const value = members.map((member) => body[member]).find((one) => typeof one === "number");
    if (value !== undefined) attributes[attribute] = value;
  }
  const { n, response_format: format, encoding_format: encoding } = body;
  if (typeof n === "number" && n !== 1) attributes["gen_ai.request.choice.count"] = n;
  if (!dialect.generates && (encoding === "float" || encoding === "base64")) {
    attributes["gen_ai.request.encoding_formats"] = [encoding];
  }
  const type = typeof format === "object" && format !== null && "type" in format ? format.type : undefined;
  if (dialect.isConversation && typeof type === "string") {
    attributes["gen_ai.output.type"] = type.startsWith("json") ? "json" : "text";
  }
  return attributes;
}

/** Hosts of providers, each with the provider's name in the conventions. */
const providers: readonly (readonly [host: RegExp, provider: string])[] = [
  [/(^|\.)openai\.azure\.com$/, "azure.ai.openai"],
  [/(^|\.)openai\.com$/, "openai"],
  [/(^|\.)anthropic\.com$/, "anthropic"],
  [/^bedrock[\w-]*\..*\.amazonaws\.com$/, "aws.bedrock"],
  [/(^|-)aiplatform\.googleapis\.com$/, "gcp.vertex_ai"],
  [/^generativelanguage\.googleapis\.com$/, "gcp.gemini"],
  [/(^|\.)groq\.com$/, "groq"],
  [/(^|\.)mistral\.ai$/, "mistral_ai"],
  [/(^|\.)deepseek\.com$/, "deepseek"],
  [/(^|\.)cohere\.(com|ai)$/, "cohere"],
  [/(^|\.)perplexity\.ai$/, "perplexity"],
  [/(^|\.)x\.ai$/, "x_ai"],
  [/(^|\.)ml\.cloud\.ibm\.com$/, "ibm.watsonx.ai"],
];

/** Returns the provider's name in the conventions, or else the name that the operator gave the upstream. */
export function providerOf({ name, server }: Engine): string {
  const host = server?.address ?? "";
  return providers.find(([pattern]) => pattern.test(host))?.[1] ?? name;
}
