// The one list of names that another parser may read as a field which they are not, and the folding by which they are found.

/** Only other names have to be folded. As `isPlainName` of bytes. */
export const plainName = /^[ -@[-~]*$/;
const asciiName = /^[ -~]*$/;
/** Several times the longest that is known. */
const maxNameLength = 256;
/** Left out by one parser or another: what is invisible, and what is no character. */
const leftOut = /\p{Default_Ignorable_Code_Point}|\p{Cc}|\p{Cs}|\ufffd|\u0307/gu;

/** A member of this name is the prototype of the object around it for servers in JavaScript that copy one into another. */
export const prototypeName = "__proto__";

/** Names of their own that servers take before those of the API: llama.cpp has both of these. */
export const synonyms: ReadonlyMap<string, string> = new Map([
  ["n_predict", "max_tokens"],
  ["n_cmpl", "n"],
]);
export const oneModel = "the models that stand in for another are the gateway's to choose; send `model` alone";
const oneEndpoint = "where a model is served is the gateway's to choose; leave it out";
/**
 * Other gateways take what they hold in the place of `model` and the rest: LiteLLM merges `extra_body` over the body, has
 * several kinds of fallbacks, and takes endpoints and prompts with models of their own; OpenRouter has `models`, `route`
 * and `preset`. So a key would reach models that it may not use, at the price of another.
 */
const overriding: ReadonlyMap<string, string> = new Map([
  ["extra_body", "SDKs send its members beside the others; send them there"],
  ["models", oneModel],
  ["fallbacks", oneModel],
  ["context_window_fallbacks", oneModel],
  ["content_policy_fallbacks", oneModel],
  ["router_settings_override", oneModel],
  ["model_list", oneModel],
  ["route", oneModel],
  ["preset", oneModel],
  ["prompt_id", oneModel],
  ["user_config", oneEndpoint],
  ["api_base", oneEndpoint],
  ["base_url", oneEndpoint],
  ["custom_llm_provider", oneEndpoint],
]);
/** Why a member that servers may take before `model` is refused; undefined: it is none of these. */
export function overridingFault(name: string): string | undefined {
  const why = overriding.get(foldName(name));
  return why && `some model servers take it before \`model\`, so it is refused: ${why}.`;
}

/** No field of the API, however they are written. */
export const refusedNames: readonly string[] = [prototypeName, ...synonyms.keys(), ...overriding.keys()];
/** Members of a body of which some are refused for what they hold, where their shape does not tell. */
export const doubtfulNames: readonly string[] = ["provideroptions", "plugins"];

/**
 * The name as the most lenient of all parsers reads it. Go's encoding/json, and after it many in other languages, compare
 * without regard to case, for which U+017F is an s, U+212A a k, U+0130 and U+0131 an i; parsers in C end a text at NUL.
 */
export function foldName(name: string): string {
  if (plainName.test(name)) return name;
  if (asciiName.test(name)) return name.toLowerCase();
  const [upToNul = ""] = name.split("\0", 1);
  // The name is no field's, whatever is folded or left out.
  if (upToNul.length > maxNameLength) return upToNul;
  return upToNul.normalize("NFKC").toUpperCase().toLowerCase().replace(leftOut, "");
}

/**
 * The folded name without what parts its words: told to ignore case, version 2 of Go's encoding/json reads `maxTokens`,
 * `max-tokens` and `max_tokens` as one. Of names that decide nothing here that is left to model servers, which have such
 * parameters of their own.
 */
export function bareName(name: string): string {
  return foldName(name).replace(/[-_]/g, "");
}
