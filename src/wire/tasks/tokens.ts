// Schemas for converting a text to tokens, and tokens to text: requests of vLLM and SGLang, and of llama-server.
import { z } from "zod";
import { modelId } from "../parts.ts";

const tokenId = z.int().min(0);
const flag = z.boolean().nullish();

/**
 * The body of `POST /tokenize`. One of `prompt`, `content` and `messages` is required. This is checked in
 * `requests/dialects/task/tokens.ts`.
 */
export const tokenizeRequest = z
  .looseObject({
    model: modelId,
    prompt: z.string().optional().describe("Text to tokenize, by vLLM's name."),
    content: z.string().optional().describe("Text to tokenize, by llama-server's name."),
    messages: z
      .array(z.looseObject({ role: z.string() }))
      .min(1)
      .optional()
      .describe(
        "Conversation to tokenize instead of a text. The model's chat template renders it, if the server supports it.",
      ),
    add_special_tokens: flag.describe(
      "True to add special tokens, such as the beginning of text. Default: true for `prompt`, false for `content`.",
    ),
    add_special: flag.describe("Same as `add_special_tokens`, by llama-server's name."),
    add_generation_prompt: flag.describe(
      "True to include the beginning of the answer after the messages. Default: true.",
    ),
    return_token_strs: flag.describe("True if vLLM is to return the text of each token as well, in `token_strs`."),
    with_pieces: flag.describe("True if llama-server is to return the text of each token, as objects in `tokens`."),
  })
  .meta({ id: "TokenizeRequest" });

export const tokenizeResult = z
  .looseObject({
    tokens: z
      .array(z.union([tokenId, z.looseObject({ id: tokenId })]))
      .describe(
        "Token ids. With `with_pieces`: objects that also have the text of each token, if the server returns it.",
      ),
    count: z.int().describe("Number of tokens."),
    max_model_len: z.int().optional().describe("Context length of the model in tokens, if known."),
  })
  .meta({ id: "TokenizeResult" });

/** The body of `POST /detokenize`. */
export const detokenizeRequest = z
  .looseObject({ model: modelId, tokens: z.array(tokenId).max(1_000_000).describe("Token ids.") })
  .meta({ id: "DetokenizeRequest" });

export const detokenizeResult = z
  .looseObject({
    prompt: z.string().describe("Text of the tokens, by vLLM's name."),
    content: z.string().describe("Same as `prompt`, by llama-server's name."),
  })
  .meta({ id: "DetokenizeResult" });
