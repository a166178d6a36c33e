// Makes a model of some hundred kilobytes that says what a script has for each turn. llama.cpp loads it, reads the whole
// prompt and samples every token as with any other model; what follows depends on the last token alone. The template ends
// the prompt in a sign for the turn, which leads to the first token of what is to be said, and each token to the next.
import { type GgufTensor, type GgufValue, ggufFile } from "./gguf-file.ts";
import { TokenChains } from "./token-chains.ts";

export interface ModelScript {
  /** The names of the tools without which there is no work to do. */
  tools: readonly string[];
  /** What the model writes after so many results of tools, and after more than there are turns. */
  turns: readonly Said[];
  /** What it writes where the tools are not offered. */
  aside: Said;
}

/** A text, in the parts that no token goes across. */
export type Said = readonly string[];

export interface ScriptModel {
  file: Uint8Array;
  /** Tokens of what it writes, with the one that ends it. */
  writes: { turns: readonly number[]; aside: number };
}

/** The form in which it writes a call, and in which it is shown those that it wrote. */
export function saidCall(name: string, json: string): Said {
  return [`<tool_call>\n{"name": "${name}", "arguments": `, json];
}

/** What stands behind a call that another may follow. */
export const afterCall = "}\n</tool_call>";

/** In a prompt each of these is a token, and all other text has as many as it has bytes in UTF-8. */
const end = "<|end|>";
const offered = "<|offered|>";
const beginnings = ["system", "user", "assistant", "tool"].map((role) => `<|${role}|>`);
const asideSign = "<|aside|>";
const turnSign = (done: number) => `<|turn ${done}|>`;

/** Token types of llama.cpp. */
const normalToken = { whole: 1 };
const controlToken = { whole: 3 };

export function scriptModel({ tools, turns, aside }: ModelScript): ScriptModel {
  const signs = [...turns.map((_, done) => turnSign(done)), asideSign];
  const control = [end, offered, ...beginnings, ...signs];
  const fixed = [...control, ...byteSigns];
  const chains = new TokenChains(fixed.length);
  const endToken = fixed.indexOf(end);
  const [asideTokens, ...turnTokens] = [aside, ...turns].map((said, index) =>
    chains.add(fixed.indexOf(signs.at(index - 1) ?? ""), said, endToken),
  );
  // This byte is the last of what stands behind a call, and the script has no other call there.
  chains.successors.set(fixed.indexOf(afterCall.slice(-1), control.length), endToken);
  const tokens = [...fixed, ...chains.pieces.map((piece) => [...Buffer.from(piece)].map(byteSign).join(""))];
  const width = Math.ceil(chains.successors.size / 32) * 32;
  const metadata = {
    ...architecture,
    "llama.embedding_length": { whole: width },
    "llama.feed_forward_length": { whole: width },
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": tokens.map((_, token) => (token < control.length ? controlToken : normalToken)),
    "tokenizer.ggml.eos_token_id": { whole: endToken },
    "tokenizer.chat_template": template(tools, turns.length),
  };
  return {
    file: ggufFile(metadata, weights(tokens.length, width, chains.successors)),
    writes: { turns: turnTokens, aside: asideTokens ?? 0 },
  };
}

const headLength = 16;

/** One layer, which adds nothing to what a token says by itself. */
const architecture: Readonly<Record<string, GgufValue>> = {
  "general.architecture": "llama",
  "general.name": "Script",
  "general.file_type": { whole: 0 },
  "llama.context_length": { whole: 131_072 },
  "llama.block_count": { whole: 1 },
  "llama.attention.head_count": { whole: 1 },
  "llama.attention.head_count_kv": { whole: 1 },
  "llama.attention.key_length": { whole: headLength },
  "llama.attention.value_length": { whole: headLength },
  "llama.rope.dimension_count": { whole: headLength },
  "llama.attention.layer_norm_rms_epsilon": { fraction: 1e-5 },
  "tokenizer.ggml.model": "gpt2",
  "tokenizer.ggml.pre": "gpt-2",
  // The loader wants them; without any, bytes stay bytes.
  "tokenizer.ggml.merges": [],
  "tokenizer.ggml.add_bos_token": false,
};

/** Logits of a token that follows and of any other are so far apart that no temperature makes another follow. */
const certainty = 10;

/** A token with a successor has a dimension of its own, by which that one is found. */
function weights(tokens: number, width: number, successors: ReadonlyMap<number, number>): GgufTensor[] {
  const embeddings = new Float32Array(tokens * width);
  const output = new Float32Array(tokens * width);
  for (const [dimension, [token, successor]] of [...successors].entries()) {
    embeddings[token * width + dimension] = 1;
    output[successor * width + dimension] = certainty;
  }
  const tensor = (name: string, dimensions: readonly number[], data?: Float32Array): GgufTensor => ({
    name: `${name}.weight`,
    dimensions,
    data: data ?? new Float32Array(dimensions.reduce((product, size) => product * size, 1)),
  });
  const norm = (name: string) => tensor(name, [width], new Float32Array(width).fill(1));
  return [
    tensor("token_embd", [width, tokens], embeddings),
    norm("blk.0.attn_norm"),
    tensor("blk.0.attn_q", [width, headLength]),
    tensor("blk.0.attn_k", [width, headLength]),
    tensor("blk.0.attn_v", [width, headLength]),
    tensor("blk.0.attn_output", [headLength, width]),
    norm("blk.0.ffn_norm"),
    tensor("blk.0.ffn_gate", [width, width]),
    tensor("blk.0.ffn_up", [width, width]),
    tensor("blk.0.ffn_down", [width, width]),
    norm("output_norm"),
    tensor("output", [width, tokens], output),
  ];
}

/** GPT-2's way of writing each byte as one character. */
export const byteSigns = makeByteSigns();

function makeByteSigns(): string[] {
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isShown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
    return String.fromCodePoint(isShown ? byte : 256 + others++);
  });
}

function byteSign(byte: number): string {
  return byteSigns[byte] ?? "";
}

function template(tools: readonly string[], turns: number): string {
  return `{%- set seen = namespace(results=0, tools=0) -%}
{%- if tools -%}
{%- for tool in tools -%}
{{- '${offered}' -}}
{%- if tool.function.name in ${JSON.stringify(tools)} -%}{%- set seen.tools = seen.tools + 1 -%}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- for message in messages -%}
{{- '<|' + message.role + '|>' -}}
{%- if message.role == 'tool' -%}{%- set seen.results = seen.results + 1 -%}{%- endif -%}
{%- if loop.last and message.role == 'assistant' -%}
{%- if seen.tools < ${tools.length} -%}{{- '${asideSign}' -}}
${Array.from({ length: turns - 1 }, (_, done) => `{%- elif seen.results == ${done} -%}{{- '${turnSign(done)}' -}}`).join("\n")}
{%- else -%}{{- '${turnSign(turns - 1)}' -}}
{%- endif -%}
{%- endif -%}
{%- if message.content -%}{{- message.content -}}{%- endif -%}
{%- if message.tool_calls -%}
{%- for call in message.tool_calls -%}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' -}}
{{- call.function.arguments | tojson -}}
{{- '}\\n</tool_call>' -}}
{%- endfor -%}
{%- endif -%}
{{- '${end}' -}}
{%- endfor -%}`;
}
