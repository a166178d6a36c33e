// A model server as the simulation has it: continuous batching, chunked prefill, a cache of prompts that is bounded.

/** A piece of a prompt; its id stands for everything up to its end, so that equal ids mean equal beginnings. */
export interface Piece {
  id: number;
  tokens: number;
}

export interface ReplicaSettings {
  /** Milliseconds of one pass through the model, however little is computed. */
  passMs: number;
  /** Milliseconds for each sequence that gets a token in the pass, and for each prompt token that is read in it. */
  msPerSequence: number;
  msPerPromptToken: number;
  /** Most prompt tokens of one pass, and sequences at once. */
  chunkTokens: number;
  sequences: number;
  /** Tokens that fit, of open requests and of what is kept of earlier ones. */
  cacheTokens: number;
}

/** Round figures of an 8-billion-parameter model on one 80 GB accelerator: 131 KB a token, some 10,000 prompt tokens/s. */
export const usualReplica: ReplicaSettings = {
  passMs: 12,
  msPerSequence: 0.15,
  msPerPromptToken: 0.1,
  chunkTokens: 2_048,
  sequences: 128,
  cacheTokens: 400_000,
};

export interface SimulatedRequest {
  readonly prompt: readonly Piece[];
  readonly promptTokens: number;
  readonly answer: Piece;
  sentMs: number;
  firstTokenMs: number;
  endMs: number;
  /** Prompt tokens that were computed for it, those among them that some replica had computed before. */
  computed: number;
  recomputed: number;
  /** Called when the first token is there, and when all are. */
  began(): void;
  ended(): void;
}

interface Sequence {
  request: SimulatedRequest;
  /** Tokens of the prompt, read so far or found. */
  read: number;
  looked: boolean;
  generated: number;
}

export class Replica {
  busyMs = 0;
  /** Tokens of prompts and answers that it worked off. */
  promptDone = 0;
  answerDone = 0;
  readonly #settings: ReplicaSettings;
  /** Pieces that any replica computed at any time. */
  readonly #everComputed: Set<number>;
  readonly #waiting: Sequence[] = [];
  #reading: Sequence[] = [];
  #generating: Sequence[] = [];
  /** Oldest first. */
  readonly #kept = new Map<number, number>();
  #keptTokens = 0;
  #openTokens = 0;

  constructor(settings: ReplicaSettings, everComputed: Set<number>) {
    this.#settings = settings;
    this.#everComputed = everComputed;
  }

  get requests(): number {
    return this.#waiting.length + this.#reading.length + this.#generating.length;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get cacheUse(): number {
    return (this.#openTokens + this.#keptTokens) / this.#settings.cacheTokens;
  }

  add(request: SimulatedRequest): void {
    this.#waiting.push({ request, read: 0, looked: false, generated: 0 });
  }

  /**
   * One pass: how long it takes, and what comes of it. Undefined where there is nothing to do.
   */
  pass(): { ms: number; finish(endMs: number): void } | undefined {
    this.#admit();
    const { passMs, msPerSequence, msPerPromptToken, chunkTokens } = this.#settings;
    if (this.#reading.length === 0 && this.#generating.length === 0) return undefined;
    const stepping = this.#generating;
    let room = chunkTokens;
    const read: Sequence[] = [];
    for (const sequence of this.#reading) {
      if (room === 0) break;
      this.#look(sequence);
      const part = Math.min(room, sequence.request.promptTokens - sequence.read);
      sequence.read += part;
      room -= part;
      this.promptDone += part;
      if (sequence.read >= sequence.request.promptTokens) read.push(sequence);
    }
    this.answerDone += stepping.length;
    const ms = passMs + stepping.length * msPerSequence + (chunkTokens - room) * msPerPromptToken;
    this.busyMs += ms;
    return {
      ms,
      finish: (endMs) => {
        for (const { request } of read) this.#keep(request.prompt);
        if (read.length > 0) this.#reading = this.#reading.filter((sequence) => !read.includes(sequence));
        for (const sequence of stepping) sequence.generated++;
        for (const sequence of read) {
          // The last pass over the prompt gives the first token.
          sequence.generated = 1;
          sequence.request.firstTokenMs = endMs;
          sequence.request.began();
        }
        const all = [...stepping, ...read];
        const isOpen = ({ generated, request }: Sequence) => generated < request.answer.tokens;
        this.#generating = all.filter(isOpen);
        for (const sequence of all) if (!isOpen(sequence)) this.#end(sequence, endMs);
      },
    };
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const { promptTokens, answer } = next.request;
      const tokens = promptTokens + answer.tokens;
      if (this.#reading.length + this.#generating.length >= this.#settings.sequences) return;
      if (this.#openTokens > 0 && this.#openTokens + tokens > this.#settings.cacheTokens) return;
      this.#waiting.shift();
      this.#openTokens += tokens;
      this.#makeRoom();
      this.#reading.push(next);
    }
  }

  /**
   * Finds the part of the prompt that is there already; all but the last token, which has to be computed for what
   * follows it.
   */
  #look(sequence: Sequence): void {
    if (sequence.looked) return;
    sequence.looked = true;
    const { request } = sequence;
    let found = 0;
    let matching = true;
    for (const { id, tokens } of request.prompt) {
      if (matching && this.#kept.has(id)) {
        found += tokens;
        continue;
      }
      matching = false;
      if (this.#everComputed.has(id)) request.recomputed += tokens;
      this.#everComputed.add(id);
    }
    sequence.read = Math.min(found, request.promptTokens - 1);
    request.computed = request.promptTokens - sequence.read;
  }

  /** Pieces go from the end to the beginning, so that what hangs on others goes before them. */
  #keep(pieces: readonly Piece[]): void {
    for (let i = pieces.length - 1; i >= 0; i--) {
      const piece = pieces[i];
      if (!piece) continue;
      if (this.#kept.delete(piece.id)) this.#keptTokens -= piece.tokens;
      this.#kept.set(piece.id, piece.tokens);
      this.#keptTokens += piece.tokens;
    }
    this.#makeRoom();
  }

  #end({ request }: Sequence, endMs: number): void {
    request.endMs = endMs;
    this.#openTokens -= request.promptTokens + request.answer.tokens;
    this.#everComputed.add(request.answer.id);
    this.#keep([...request.prompt, request.answer]);
    request.ended();
  }

  /**
   * Tokens that open requests hold are counted twice where they are kept as well: the cache is smaller than it could
   * be, for all alike.
   */
  #makeRoom(): void {
    const most = Math.max(0, this.#settings.cacheTokens - this.#openTokens);
    for (const [id, tokens] of this.#kept) {
      if (this.#keptTokens <= most) return;
      this.#kept.delete(id);
      this.#keptTokens -= tokens;
    }
  }
}
