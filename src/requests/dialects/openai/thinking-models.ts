// Describes the thinking options that each of OpenAI's models accepts. A model refuses a request with any other
// thinking option.

/** Matches OpenAI's reasoning models. */
const thinker = /^(?:openai\/)?(?:o[1-9]|gpt-[5-9])(?![0-9])/;
/** Matches OpenAI's models without reasoning, or with reasoning that no option changes. */
const fixed = /^(?:openai\/)?(?:chatgpt-|gpt-[34](?![0-9])|gpt-[5-9][.0-9]*-chat)/;

/** The efforts, in order from least to most. */
const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/**
 * The efforts that each model accepts. The first pattern that matches the model counts
 * (platform.openai.com/docs/guides/reasoning, and the refusals of the API).
 */
const taken: readonly (readonly [model: RegExp, efforts: readonly string[]])[] = [
  [/^(?:openai\/)?o[1-9]/, ["low", "medium", "high"]],
  [/gpt-5-pro/, ["high"]],
  [/gpt-5\.\d+-pro/, ["medium", "high", "xhigh"]],
  [/gpt-5\.1-codex-max/, ["low", "medium", "high", "xhigh"]],
  [/gpt-5(?:\.1)?-codex/, ["low", "medium", "high"]],
  [/-codex/, ["low", "medium", "high", "xhigh"]],
  [/gpt-5\.1(?!\d)/, ["none", "low", "medium", "high"]],
  [/gpt-5(?![.\d])/, ["minimal", "low", "medium", "high"]],
  [thinker, ["none", "low", "medium", "high", "xhigh"]],
];

/** Reports whether the model is one of OpenAI's reasoning models. These models refuse `max_tokens` in a chat. */
export function isOpenaiThinker(model: string): boolean {
  return thinker.test(model);
}

/** Reports whether the model is one of OpenAI's models that refuse every option for reasoning. */
export function refusesReasoning(model: string): boolean {
  return fixed.test(model);
}

/**
 * Returns an effort that the OpenAI model accepts. This is the requested effort if the model accepts it, otherwise the
 * next higher one, otherwise the highest.
 */
export function takenEffort(effort: string, model: string): string {
  const known = taken.find(([pattern]) => pattern.test(model))?.[1];
  if (!known || known.includes(effort)) return effort;
  const wanted = efforts.indexOf(effort);
  return known.find((one) => efforts.indexOf(one) > wanted) ?? known.at(-1) ?? effort;
}
