// Reads the fields `prompt` and `input`: a text, several texts, tokens, or several arrays of tokens.
import type { Token } from "node-llama-cpp";
import type { Fields } from "./fields.ts";
import { invalid } from "./request-error.ts";

export type TextInput = string | readonly Token[];

const maxInputs = 2048;

/** Reads the texts of a field. Throws a RequestError with the path of an invalid one. */
export function readTextInputs(fields: Fields, key: string, vocabularySize: number): TextInput[] {
  const value = fields.value(key);
  const name = fields.name(key);
  if (typeof value === "string") return [value];
  if (!Array.isArray(value) || value.length === 0) {
    throw invalid(
      `${name} must be a string, an array of strings, an array of token ids, or an array of such arrays.`,
      name,
    );
  }
  if (typeof value[0] === "number") return [readTokens(value, name, vocabularySize)];
  if (value.length > maxInputs) throw invalid(`${name} may hold at most ${maxInputs} entries.`, name);
  return value.map((entry, index) => {
    if (typeof entry === "string") return entry;
    if (Array.isArray(entry)) return readTokens(entry, `${name}[${index}]`, vocabularySize);
    throw invalid(`${name}[${index}] must be a string or an array of token ids.`, `${name}[${index}]`);
  });
}

export function isTokenArray(input: TextInput): input is readonly Token[] {
  return typeof input !== "string";
}

function readTokens(values: readonly unknown[], name: string, vocabularySize: number): Token[] {
  if (values.length === 0) throw invalid(`${name} must hold at least one token id.`, name);
  return values.map((value, index) => {
    if (Number.isInteger(value) && (value as number) >= 0 && (value as number) < vocabularySize) return value as Token;
    throw invalid(
      `${name}[${index}] must be a token id of the model, from 0 to ${vocabularySize - 1}.`,
      `${name}[${index}]`,
    );
  });
}
