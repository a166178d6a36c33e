// Writes the answers of a batch, in the order of its lines, into the files that its owner reads.
import type { AnsweredLine, Batch, BatchWork, Claim } from "../domain/batches/batch.ts";
import type { NewFile, StoredFiles } from "../files/stored-files.ts";
import { unansweredLine, unreadableLine } from "./output-lines.ts";

export interface FinishDeps {
  work: Pick<BatchWork, "lines" | "finish">;
  storedFiles: Pick<StoredFiles, "begin">;
  nowSeconds(): number;
}

/** Few, as an answer may be long. */
const linesAtOnce = 10;

/**
 * What was begun by one that died is written anew, into files of its own: one that was only slow, and lost its lease, must
 * touch nothing of whoever finishes in its place. False where the batch is claimed no more; then nothing stays of its files.
 */
export async function finishBatch(batch: Batch, claim: Claim, deps: FinishDeps): Promise<boolean> {
  const { work } = deps;
  const output = new Output(batch, "output", deps);
  // Anthropic gives all results in one.
  const errors = batch.form === "anthropic" ? output : new Output(batch, "errors", deps);
  try {
    for (let after = 0; ; ) {
      const lines = await work.lines(batch.id, after, linesAtOnce);
      for (const line of lines) await (isGood(line) ? output : errors).write(textOf(batch, line));
      const last = lines.at(-1);
      if (!last) break;
      after = last.line;
    }
    const outputFileId = await output.finish();
    const errorFileId = errors === output ? null : await errors.finish();
    const { id, ending } = batch;
    if (await work.finish({ id, ending, outputFileId, errorFileId }, claim, deps.nowSeconds())) return true;
    await output.discard();
    await errors.discard();
    return false;
  } catch (error) {
    // Where nobody can say whether the batch has them, those that are finished stay.
    await output.abandon();
    await errors.abandon();
    throw error;
  }
}

/** One of the files; none is made where nothing is written to it. */
class Output {
  readonly #batch: Batch;
  readonly #what: "output" | "errors";
  readonly #deps: FinishDeps;
  #file: NewFile | undefined;
  #isFinished = false;

  constructor(batch: Batch, what: "output" | "errors", deps: FinishDeps) {
    this.#batch = batch;
    this.#what = what;
    this.#deps = deps;
  }

  async write(text: string): Promise<void> {
    this.#file ??= await this.#deps.storedFiles.begin(this.#batch, {
      ...{ filename: this.#filename, purpose: "batch_output", bytes: 0 },
    });
    await this.#file.write(Buffer.from(`${text}\n`));
  }

  /** Its id; null where there is none. */
  async finish(): Promise<string | null> {
    if (!this.#file) return null;
    const { keepSeconds } = this.#batch;
    const { id } = await this.#file.finish({ filename: this.#filename, purpose: "batch_output", keepSeconds });
    this.#isFinished = true;
    return id;
  }

  async abandon(): Promise<void> {
    if (!this.#isFinished) await this.discard();
  }

  /** Also one that is finished. */
  async discard(): Promise<void> {
    await this.#file?.abandon();
  }

  get #filename(): string {
    return `${this.#batch.id}_${this.#what}.jsonl`;
  }
}

function isGood({ answer }: AnsweredLine): boolean {
  return answer !== null && !answer.isError && answer.text !== undefined;
}

function textOf(batch: Batch, line: AnsweredLine): string {
  if (!line.answer) return unansweredLine(batch, line);
  return line.answer.text ?? unreadableLine(batch, line);
}
