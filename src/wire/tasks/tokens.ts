// Tokens of a text, and the text of tokens, on the wire: vLLM's and SGLang's requests, and llama-server's.
import { z } from "zod";
import { modelId } from "../parts.ts";

const tokenId = z.int().min(0);
const flag = z.boolean().nullish();

/** POST /tokenize. One of `prompt`, `content` and `messages` has to be there, which `requests/dialects/task/tokens.ts` sees to. */
export const tokenizeRequest = z
  .looseObject({
    model: modelId,
    prompt: z.string().optional().describe("The text, by vLLM's name."),
    content: z.string().optional().describe("The text, by llama-server's name."),
    messages: z
      .array(z.looseObject({ role: z.string() }))
      .min(1)
      .optional()
      .describe(
        "A conversation in place of a text, as the model's template makes a prompt of it, where the server can.",
      ),
    add_special_tokens: flag.describe(
      "Whether tokens for the beginning and the like are added. Default: of a `prompt`, but not of `content`.",
    ),
    add_special: flag.describe("The same by llama-server's name."),
    add_generation_prompt: flag.describe(
      "Whether, for messages, the beginning of the answer is among them. Default: yes.",
    ),
    return_token_strs: flag.describe("Whether vLLM tells the text of each token as well, as `token_strs`."),
    with_pieces: flag.describe("Whether llama-server tells the text of each token, as objects in `tokens`."),
  })
  .meta({ id: "TokenizeRequest" });

export const tokenizeResult = z
  .looseObject({
    tokens: z
      .array(z.union([tokenId, z.looseObject({ id: tokenId })]))
      .describe("Their ids; with `with_pieces` objects that have their texts as well, where the server tells them."),
    count: z.int().describe("How many they are."),
    max_model_len: z.int().optional().describe("Tokens that the model takes, where that is known."),
  })
  .meta({ id: "TokenizeResult" });

/** POST /detokenize. */
export const detokenizeRequest = z
  .looseObject({ model: modelId, tokens: z.array(tokenId).max(1_000_000).describe("Ids of tokens.") })
  .meta({ id: "DetokenizeRequest" });

export const detokenizeResult = z
  .looseObject({
    prompt: z.string().describe("The text, by vLLM's name."),
    content: z.string().describe("The same by llama-server's name."),
  })
  .meta({ id: "DetokenizeResult" });
