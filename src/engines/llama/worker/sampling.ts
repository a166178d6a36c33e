// Converts a request's sampling parameters, such as `temperature`, into options for node-llama-cpp.
import type {
  LlamaGrammarEvaluationState,
  LlamaModel,
  SequenceEvaluateOptions,
  Token,
  TokenBias,
} from "node-llama-cpp";
import type { Library } from "./library.ts";
import { type Fields, isObject } from "./request/fields.ts";
import { invalid } from "./request/request-error.ts";

export interface Sampling {
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  frequencyPenalty: number;
  presencePenalty: number;
  /** The client's seed, which may be any whole number. */
  seed: number | undefined;
  bias: TokenBias | undefined;
  /** The tokens that the client forbids. */
  banned: ReadonlySet<Token>;
}

/**
 * The maximum of top-k. The library's default of 40 would distort temperature 1. Beyond a thousand candidates
 * the rest is unlikely, and sorting a vocabulary of 150,000 for each token takes milliseconds.
 */
const maxCandidates = 1000;

/**
 * The logit bias of a banned token. It is finite: if a grammar allows only banned tokens, minus infinity would
 * let the sampler choose a token outside the grammar.
 */
const bannedLogit = -1e6;

/** Reads `temperature`, `top_p`, `top_k`, `min_p`, the penalties, `seed` and `logit_bias`, with OpenAI's defaults. */
export function readSampling(fields: Fields, library: Library, model: LlamaModel, vocabularySize: number): Sampling {
  const topK = fields.integer("top_k", 0, Number.MAX_SAFE_INTEGER) ?? 0;
  const seed = fields.value("seed");
  if (seed !== undefined && !Number.isInteger(seed)) throw invalid("seed must be a whole number.");
  return {
    temperature: fields.number("temperature", 0, 2) ?? 1,
    topP: fields.number("top_p", 0, 1) ?? 1,
    topK: topK === 0 ? maxCandidates : Math.min(topK, maxCandidates),
    minP: fields.number("min_p", 0, 1) ?? 0,
    frequencyPenalty: fields.number("frequency_penalty", -2, 2) ?? 0,
    presencePenalty: fields.number("presence_penalty", -2, 2) ?? 0,
    seed: seed as number | undefined,
    ...readBias(fields.value("logit_bias"), library, model, vocabularySize),
  };
}

/**
 * Returns the options for `sequence.evaluate`. All of the library's defaults are overridden: greedy decoding, 40
 * candidates, and one seed per second for all choices. `choice` varies the seed. The penalties read `generated`,
 * to which the caller adds tokens.
 */
export function evaluateOptions(
  sampling: Sampling,
  choice: number,
  generated: Token[],
  contextSize: number,
  grammar: () => LlamaGrammarEvaluationState | undefined,
): SequenceEvaluateOptions {
  const { frequencyPenalty, presencePenalty, bias, seed } = sampling;
  return {
    temperature: sampling.temperature,
    topP: sampling.topP,
    topK: sampling.topK,
    minP: sampling.minP,
    seed: seed === undefined ? randomSeed() : choiceSeed(seed, choice),
    grammarEvaluationState: grammar,
    yieldEogToken: true,
    ...(bias === undefined ? {} : { tokenBias: bias }),
    ...(frequencyPenalty === 0 && presencePenalty === 0
      ? {}
      : {
          repeatPenalty: {
            punishTokens: () => generated,
            maxPunishTokens: contextSize,
            penalty: 1,
            frequencyPenalty,
            presencePenalty,
          },
        }),
  };
}

/**
 * Returns the 32-bit seed for llama.cpp. The first choice uses a 32-bit seed unchanged. A larger seed, or the seed of a
 * further choice, is hashed: otherwise the second choice would equal the first choice of the next seed.
 */
export function choiceSeed(seed: number, choice: number): number {
  if (choice === 0 && seed >= 0 && seed <= 0xffff_ffff) return seed;
  return Bun.hash.xxHash32(`${seed} ${choice}`);
}

function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

function readBias(
  value: unknown,
  library: Library,
  model: LlamaModel,
  vocabularySize: number,
): Pick<Sampling, "bias" | "banned"> {
  const banned = new Set<Token>();
  if (value === undefined) return { bias: undefined, banned };
  if (!isObject(value)) throw invalid("logit_bias must be an object of token ids and numbers from -100 to 100.");
  const entries = Object.entries(value);
  if (entries.length === 0) return { bias: undefined, banned };
  const biases = library.TokenBias.for(model);
  for (const [key, bias] of entries) {
    const token = Number(key);
    if (!/^\d+$/.test(key) || token >= vocabularySize) {
      throw invalid(`logit_bias.${key}: the model has no such token; its token ids are 0 to ${vocabularySize - 1}.`);
    }
    if (typeof bias !== "number" || !(bias >= -100 && bias <= 100)) {
      throw invalid(`logit_bias.${key} must be a number from -100 to 100.`);
    }
    // The library ignores a bias for tokens that end a reply, so the request is refused.
    if (model.isEogToken(token as Token))
      throw invalid(`logit_bias.${key}: this token ends the reply and takes no bias.`);
    if (bias === -100) banned.add(token as Token);
    biases.set(token as Token, { logit: bias === -100 ? bannedLogit : bias });
  }
  return { bias: biases, banned };
}
