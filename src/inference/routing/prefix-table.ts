// Remembers which prompt beginnings each deployment of a model was sent lately and may still have cached.
import type { PromptPrefix } from "./prompt-prefix.ts";

/** Deployments per word of bits. */
const wordBits = 31;
const maxWords = 4;

interface Word {
  /**
   * The deployments that were sent a prompt with the hash, as bits: since the last change of generation, and before it.
   */
  young: Map<number, number>;
  old: Map<number, number>;
}

/**
 * Bounded: when the maximum of hashes is known, those not used since the last change of generation are forgotten. The
 * caches of deployments behave roughly like this, and do not report their content.
 */
export class PrefixTable<D extends object> {
  readonly #words: Word[] = [];
  #columns = new Map<D, number>();

  /** Number of remembered hashes, at most twice the last maximum of `record` for each 31 deployments. */
  get size(): number {
    let size = 0;
    for (const { young, old } of this.#words) size += young.size + old.size;
    return size;
  }

  /** Sets for each candidate how many characters of the prompt it was sent before. */
  read(prefix: PromptPrefix, candidates: readonly { state: D; warm: number }[]): void {
    const known = this.#words.map((word) => lengthsIn(word, prefix));
    for (const candidate of candidates) {
      const column = this.#columns.get(candidate.state);
      if (column !== undefined) candidate.warm = known[Math.floor(column / wordBits)]?.[column % wordBits] ?? 0;
    }
  }

  /** Returns how many characters of the prompt the deployment was sent before. */
  warm(prefix: PromptPrefix, deployment: D): number {
    const candidate = { state: deployment, warm: 0 };
    this.read(prefix, [candidate]);
    return candidate.warm;
  }

  /** Records that the deployment is sent the prompt. `most` is the maximum of hashes per generation. */
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
      // Deployments that no longer exist keep their columns, so the table starts again when all columns are taken.
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
 * Returns lengths by bit. A deployment with a hash has or had all hashes before it, so the first missing one ends its
 * length.
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
