// POST /tokenize and /detokenize: converts a text or a conversation to tokens, and tokens to text.
import type { Token } from "node-llama-cpp";
import { chatTokens } from "../request/chat.ts";
import type { Fields } from "../request/fields.ts";
import { invalid } from "../request/request-error.ts";
import { type ModelRuntime, type Runtime, writesText } from "../runtime.ts";

/** The longest text, in characters. The tokenizer reads some megabytes a second, and other requests wait meanwhile. */
const maxTextLength = 1024 * 1024;
const mostTokens = 1_000_000;
/** The most tokens whose texts are returned. A hundred thousand of them take a tenth of a second. */
const maxPieces = 65_536;

/**
 * Answers with the tokens of a text or of a conversation. A text may be in the request field of vLLM or of
 * llama-server. A conversation is in `messages`, for models that chat.
 */
export function tokenize(runtime: ModelRuntime | Runtime, fields: Fields): Response {
  const tokens = fields.value("messages") === undefined ? textTokens(runtime, fields) : messageTokens(runtime, fields);
  const [withPieces, withStrings] = [fields.boolean("with_pieces"), fields.boolean("return_token_strs")];
  const pieces = withPieces || withStrings ? piecesOf(runtime, tokens) : [];
  const shown = withPieces ? pieces.map((piece, index) => ({ id: tokens[index], piece })) : tokens;
  const count = { count: tokens.length, max_model_len: runtime.contextSize, tokens: shown };
  return Response.json(withStrings ? { ...count, token_strs: pieces } : count);
}

function piecesOf({ model }: ModelRuntime | Runtime, tokens: readonly Token[]): string[] {
  if (tokens.length > maxPieces) {
    throw invalid(
      `with_pieces and return_token_strs are for at most ${maxPieces} tokens (got ${tokens.length}). Split the text.`,
    );
  }
  return tokens.map((token) => model.detokenize([token], true));
}

export function detokenize({ model, vocabularySize }: ModelRuntime, fields: Fields): Response {
  const values = fields.array("tokens") ?? [];
  if (values.length > mostTokens) throw invalid(`tokens may hold at most ${mostTokens} ids.`, "tokens");
  const tokens = values.map((value, index) => {
    if (Number.isInteger(value) && (value as number) >= 0 && (value as number) < vocabularySize) return value as Token;
    const name = `tokens[${index}]`;
    throw invalid(`${name} must be a token id of the model, from 0 to ${vocabularySize - 1}.`, name);
  });
  const text = model.detokenize(tokens, true);
  return Response.json({ prompt: text, content: text });
}

function messageTokens(runtime: ModelRuntime | Runtime, fields: Fields): readonly Token[] {
  if (writesText(runtime)) return chatTokens(runtime, fields);
  throw invalid("messages: this model does not chat. Send the text as prompt.", "messages");
}

function textTokens({ model }: ModelRuntime, fields: Fields): Token[] {
  const ofPrompt = fields.string("prompt");
  const text = ofPrompt ?? fields.string("content");
  const name = ofPrompt === undefined ? "content" : "prompt";
  if (text === undefined) throw invalid("prompt is required: a text.", "prompt");
  if (text.length > maxTextLength) {
    throw invalid(`${name} may have at most ${maxTextLength} characters here. Split the text.`, name);
  }
  // Control tokens in the text are read as plain text, unless `parse_special` is true.
  const tokens = model.tokenize(text, fields.boolean("parse_special") ?? false);
  const special = fields.boolean("add_special_tokens") ?? fields.boolean("add_special") ?? ofPrompt !== undefined;
  return special ? withEnds(model.tokens, tokens) : tokens;
}

/** Adds the tokens that the tokenizer puts at the beginning and end of a text. */
function withEnds(
  { bos, eos, shouldPrependBosToken, shouldAppendEosToken }: ModelRuntime["model"]["tokens"],
  tokens: Token[],
): Token[] {
  if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos);
  if (shouldAppendEosToken && eos !== null && tokens.at(-1) !== eos) tokens.push(eos);
  return tokens;
}
