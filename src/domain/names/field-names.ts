// Detects field names that another parser may read as a different field. Names are compared in a folded form.

/**
 * Matches names that are equal to their folded form: without uppercase letters and non-ASCII characters. `isPlainName`
 * is the same check for bytes.
 */
export const plainName = /^[ -@[-~]*$/;
const asciiName = /^[ -~]*$/;
/** Maximum length of a name to fold. Known names are much shorter. */
const maxNameLength = 256;
/** Characters that some parsers ignore: invisible characters, and code points without a character. */
const leftOut = /\p{Default_Ignorable_Code_Point}|\p{Cc}|\p{Cs}|\ufffd|\u0307/gu;

/** If a server in JavaScript copies a member of this name, it changes the object's prototype. */
export const prototypeName = "__proto__";

/** Other names for members of the API, which llama.cpp prefers to the API's own names. */
export const synonyms: ReadonlyMap<string, string> = new Map([
  ["n_predict", "max_tokens"],
  ["n_cmpl", "n"],
]);
export const oneModel = "the models that stand in for another are the gateway's to choose; send `model` alone";
const oneEndpoint = "where a model is served is the gateway's to choose; leave it out";
/**
 * Members that other gateways prefer to `model`. LiteLLM merges `extra_body` into the body, has several kinds of
 * fallbacks, and accepts endpoints and prompts with their own models. OpenRouter has `models`, `route` and `preset`.
 * With these, a key could reach other models at another price.
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
/** Returns why a member that some servers prefer to `model` is refused; undefined for other members. */
export function overridingFault(name: string): string | undefined {
  const why = overriding.get(foldName(name));
  return why && `some model servers take it before \`model\`, so it is refused: ${why}.`;
}

/** Names that are refused, in any spelling. */
export const refusedNames: readonly string[] = [prototypeName, ...synonyms.keys(), ...overriding.keys()];
/** Names of members that are refused only for some contents. */
export const doubtfulNames: readonly string[] = ["provideroptions", "plugins"];

/**
 * Returns the name as the most lenient parser reads it. Go's encoding/json and others ignore case. They then read
 * U+017F as s, U+212A as k, and U+0130 and U+0131 as i. C parsers end a text at NUL.
 */
export function foldName(name: string): string {
  if (plainName.test(name)) return name;
  if (asciiName.test(name)) return name.toLowerCase();
  const [upToNul = ""] = name.split("\0", 1);
  // A name of this length is no field, even after folding.
  if (upToNul.length > maxNameLength) return upToNul;
  return upToNul.normalize("NFKC").toUpperCase().toLowerCase().replace(leftOut, "");
}

/**
 * Returns the folded name without hyphens and underscores. If told to ignore case, version 2 of Go's encoding/json
 * reads `maxTokens`, `max-tokens` and `max_tokens` as one name. Used only for names that the gateway acts on, because
 * model servers have other parameters of their own.
 */
export function bareName(name: string): string {
  return foldName(name).replace(/[-_]/g, "");
}
