// Makes a model of some kilobytes that ranks: a document that ends in an exclamation mark is relevant to every query, all others are not known to be.
import { type GgufTensor, ggufFile } from "./gguf-file.ts";
import { byteSigns } from "./script-model.ts";

const width = 32;
const headLength = 16;
/** So sure is it of what is relevant. */
const certainty = 10;
const mark = byteSigns.indexOf("!");

/** Every byte is a token, and the last of a pair decides: its one layer adds nothing to what a token says by itself. */
export function rankingModel(): Uint8Array {
  const tokens = [...byteSigns, "<|end|>"];
  return ggufFile(
    {
      "general.architecture": "qwen3",
      "general.name": "Ranker",
      "general.file_type": { whole: 0 },
      "qwen3.context_length": { whole: 512 },
      "qwen3.block_count": { whole: 1 },
      "qwen3.embedding_length": { whole: width },
      "qwen3.feed_forward_length": { whole: width },
      "qwen3.attention.head_count": { whole: 1 },
      "qwen3.attention.head_count_kv": { whole: 1 },
      "qwen3.attention.key_length": { whole: headLength },
      "qwen3.attention.value_length": { whole: headLength },
      "qwen3.attention.layer_norm_rms_epsilon": { fraction: 1e-5 },
      "qwen3.classifier.output_labels": ["yes", "no"],
      "tokenizer.ggml.model": "gpt2",
      "tokenizer.ggml.pre": "gpt-2",
      "tokenizer.ggml.merges": [],
      "tokenizer.ggml.tokens": tokens,
      "tokenizer.ggml.token_type": tokens.map((_, token) => ({ whole: token < byteSigns.length ? 1 : 3 })),
      "tokenizer.ggml.eos_token_id": { whole: byteSigns.length },
      "tokenizer.ggml.add_bos_token": false,
      "tokenizer.chat_template.rerank": "{query}|{document}",
    },
    weights(tokens.length),
  );
}

function weights(tokens: number): GgufTensor[] {
  const embeddings = new Float32Array(tokens * width);
  embeddings[mark * width] = 1;
  const labels = new Float32Array(2 * width);
  labels[0] = certainty;
  const tensor = (name: string, dimensions: readonly number[], data?: Float32Array): GgufTensor => ({
    name: `${name}.weight`,
    dimensions,
    data: data ?? new Float32Array(dimensions.reduce((product, size) => product * size, 1)),
  });
  const norm = (name: string, size = width) => tensor(name, [size], new Float32Array(size).fill(1));
  return [
    tensor("token_embd", [width, tokens], embeddings),
    norm("blk.0.attn_norm"),
    tensor("blk.0.attn_q", [width, headLength]),
    tensor("blk.0.attn_k", [width, headLength]),
    tensor("blk.0.attn_v", [width, headLength]),
    tensor("blk.0.attn_output", [headLength, width]),
    norm("blk.0.attn_q_norm", headLength),
    norm("blk.0.attn_k_norm", headLength),
    norm("blk.0.ffn_norm"),
    tensor("blk.0.ffn_gate", [width, width]),
    tensor("blk.0.ffn_up", [width, width]),
    tensor("blk.0.ffn_down", [width, width]),
    norm("output_norm"),
    tensor("cls.output", [width, 2], labels),
  ];
}
