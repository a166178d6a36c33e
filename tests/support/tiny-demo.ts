// The built-in demo model as tests use it: a question whose likeliest answer is known, and a request that never ends by itself.
import reference from "../../models/tiny-demo/reference.json" with { type: "json" };

export const demoModel = "tiny-demo";
/** Numbers in one embedding, and tokens of prompt and answer together. */
export const demoEmbeddingLength = 256;
export const demoContext = 1024;

export const question = "Who are you?";
/** Its greedy answer, as the model's own training run recorded it, without the end token. */
export const answer = greedyAnswer(question);

export const messages: { role: "user"; content: string }[] = [{ role: "user", content: question }];
/** Always the likeliest token: the same words at every call. */
export const chat = { model: demoModel, temperature: 0, messages };

/** Makes one word (token 1147) so likely that the answer is nothing else and only ends at `max_tokens`. */
export const endlessWord = "Hello";
export const endless = { ...chat, max_tokens: 1000, logit_bias: { "1147": 100 } };

function greedyAnswer(content: string): string {
  const prompt = `<|im_start|>user\n${content}<|im_end|>\n<|im_start|>assistant\n`;
  const entry = reference.find((candidate) => candidate.prompt === prompt);
  if (!entry) throw new Error(`models/tiny-demo/reference.json has no answer to: ${content}`);
  return entry.text.replace("<|im_end|>", "");
}
