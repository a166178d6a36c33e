// Names that another parser may read as a different field, and the folding that finds them.

/**
 * Matches names without uppercase letters and non-ASCII characters, which need no folding. Corresponds to `isPlainName`
 * for bytes.
 */
export const plainName = /^[ -@[-~]*$/;
const asciiName = /^[ -~]*$/;
/** Several times the length of the longest known name. */
const maxNameLength = 256;
/** Characters that some parsers ignore: invisible ones, and code points without a character. */
const leftOut = /\p{Default_Ignorable_Code_Point}|\p{Cc}|\p{Cs}|\ufffd|\u0307/gu;

/** A member with this name changes the prototype of the object around it, if a JavaScript server copies the members. */
export const prototypeName = "__proto__";

/** Servers' own names that they prefer to the API's names, each with the API's name. Both are llama.cpp's. */
export const synonyms: ReadonlyMap<string, string> = new Map([
  ["n_predict", "max_tokens"],
  ["n_cmpl", "n"],
]);
export const oneModel = "the models that stand in for another are the gateway's to choose; send `model` alone";
const oneEndpoint = "where a model is served is the gateway's to choose; leave it out";
/**
 * Other gateways prefer these members to `model` and others: LiteLLM merges `extra_body` into the body, has several
 * kinds of fallbacks, and accepts endpoints and prompts with their own models; OpenRouter has `models`, `route` and
 * `preset`. So a key could reach other models, at another price.
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
/** Returns why a member that servers may prefer to `model` is refused. Undefined for other members. */
export function overridingFault(name: string): string | undefined {
  const why = overriding.get(foldName(name));
  return why && `some model servers take it before \`model\`, so it is refused: ${why}.`;
}

/** Names that are no field of the API in any spelling. */
export const refusedNames: readonly string[] = [prototypeName, ...synonyms.keys(), ...overriding.keys()];
/** Members of a body that are refused only for some of their contents. Their shape alone does not tell. */
export const doubtfulNames: readonly string[] = ["provideroptions", "plugins"];

/**
 * Returns the name as the most lenient parser reads it. Go's encoding/json and others ignore case, for which U+017F is
 * an s, U+212A a k, U+0130 and U+0131 an i; C parsers end a text at NUL.
 */
export function foldName(name: string): string {
  if (plainName.test(name)) return name;
  if (asciiName.test(name)) return name.toLowerCase();
  const [upToNul = ""] = name.split("\0", 1);
  // A longer name is no field, whatever is folded or ignored.
  if (upToNul.length > maxNameLength) return upToNul;
  return upToNul.normalize("NFKC").toUpperCase().toLowerCase().replace(leftOut, "");
}

/**
 * Returns the folded name without word separators: version 2 of Go's encoding/json, if told to ignore case, reads
 * `maxTokens`, `max-tokens` and `max_tokens` as one. Used only for names that the gateway acts on; model servers have
 * other parameters of their own.
 */
export function bareName(name: string): string {
  return foldName(name).replace(/[-_]/g, "");
}
