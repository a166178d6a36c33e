// Remembers which beginnings of prompts each deployment of a model was recently sent, because they may still be in its
// prompt cache.
import type { PromptPrefix } from "./prompt-prefix.ts";

/** Number of deployments whose bits fit into one word. */
const wordBits = 31;
const maxWords = 4;

interface Word {
  /**
   * For each hash of a prompt's beginning, one bit for each deployment that was sent this beginning. `young` is the
   * current generation, `old` is the previous one.
   */
  young: Map<number, number>;
  old: Map<number, number>;
}

/**
 * A table of prompt hashes, limited in size by two generations. When the new generation is full, the old one is
 * dropped. This roughly models the prompt caches of deployments, which do not report their content.
 */
export class PrefixTable<D extends object> {
  readonly #words: Word[] = [];
  #columns = new Map<D, number>();

  /** Number of remembered hashes. There are at most two generations for every 31 deployments. */
  get size(): number {
    let size = 0;
    for (const { young, old } of this.#words) size += young.size + old.size;
    return size;
  }

  /**
   * Sets `warm` of each candidate to the number of characters of the prompt's beginning that the candidate was sent
   * before.
   */
  read(prefix: PromptPrefix, candidates: readonly { state: D; warm: number }[]): void {
    const known = this.#words.map((word) => lengthsIn(word, prefix));
    for (const candidate of candidates) {
      const column = this.#columns.get(candidate.state);
      if (column !== undefined) candidate.warm = known[Math.floor(column / wordBits)]?.[column % wordBits] ?? 0;
    }
  }

  /** Returns how many characters at the beginning of the prompt the deployment has received before. */
  warm(prefix: PromptPrefix, deployment: D): number {
    const candidate = { state: deployment, warm: 0 };
    this.read(prefix, [candidate]);
    return candidate.warm;
  }

  /** Records that the deployment is sent this prompt. `most` is the maximum number of hashes in a generation. */
  record(prefix: PromptPrefix, deployment: D, most: number): void {
    const column = this.#columnOf(deployment);
    const word = this.#words[Math.floor(column / wordBits)];
    if (!word) return;
    const bit = 1 << (column % wordBits);
    for (const hash of prefix.hashes) word.young.set(hash, (word.young.get(hash) ?? 0) | bit);
    if (word.young.size <= most) return;
    word.old = word.young;
    word.young = new Map();
  }

  #columnOf(deployment: D): number {
    let column = this.#columns.get(deployment);
    if (column !== undefined) return column;
    if (this.#columns.size >= wordBits * maxWords) {
      // Deleted deployments keep their bits. So if all bits are taken, the table is emptied.
      this.#columns = new Map();
      this.#words.length = 0;
    }
    column = this.#columns.size;
    this.#columns.set(deployment, column);
    if (this.#words.length * wordBits <= column) this.#words.push({ young: new Map(), old: new Map() });
    return column;
  }
}

/**
 * Returns for each deployment the number of characters of the prompt that it was sent before. The first missing hash
 * ends this length, because a deployment that has a hash has all earlier hashes too.
 */
function lengthsIn({ young, old }: Word, { hashes, ends }: PromptPrefix): number[] {
  const lengths: number[] = [];
  let holders = -1;
  let length = 0;
  for (let i = 0; i < hashes.length && holders !== 0; i++) {
    const hash = hashes[i] ?? 0;
    const still = holders & ((young.get(hash) ?? 0) | (old.get(hash) ?? 0));
    if (still !== holders) write(lengths, holders & ~still, length);
    holders = still;
    length = ends[i] ?? length;
  }
  write(lengths, holders, length);
  return lengths;
}

function write(lengths: number[], bits: number, length: number): void {
  if (length === 0) return;
  for (let remaining = bits & 0x7fffffff; remaining !== 0; remaining &= remaining - 1)
    lengths[31 - Math.clz32(remaining & -remaining)] = length;
}
