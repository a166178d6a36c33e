// Writes the results of a batch, in the order of its lines, into the files for its owner.
import type { AnsweredLine, Batch, BatchWork, Claim } from "../domain/batches/batch.ts";
import type { NewFile, StoredFiles } from "../files/stored-files.ts";
import { unansweredLine, unreadableLine } from "./output-lines.ts";

export interface FinishDeps {
  work: Pick<BatchWork, "lines" | "finish">;
  storedFiles: Pick<StoredFiles, "begin">;
  nowSeconds(): number;
}

/** Lines of one read. The number is small, because answers may be long. */
const linesAtOnce = 10;

/**
 * Writes the result files of a batch. Each attempt writes new files, so that a slow process which lost its lease cannot
 * change the files of its successor. Returns false and removes the files if the claim was lost.
 */
export async function finishBatch(batch: Batch, claim: Claim, deps: FinishDeps): Promise<boolean> {
  const { work } = deps;
  const output = new Output(batch, "output", deps);
  // Anthropic puts all results in one file.
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
    // Files that are already finished stay, because the batch may refer to them.
    await output.abandon();
    await errors.abandon();
    throw error;
  }
}

/** A result file of the batch. The first line creates the file. */
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

  /** Returns the file's id; null if nothing was written. */
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

  /** Deletes the file, even if it is finished. */
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
