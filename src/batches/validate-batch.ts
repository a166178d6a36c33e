// Validates the input file of a batch in one pass: each line becomes a request or a fault.
import { GatewayError } from "../base/errors.ts";
import type { Batch, BatchFault, BatchLine, BatchWork, Claim } from "../domain/batches/batch.ts";
import { maxModelIdLength } from "../domain/models/model-entry.ts";
import type { StoredFiles } from "../files/stored-files.ts";
import type { RequestLimits } from "../requests/decode/decode-request.ts";
import { type FoundLine, isKeepable, type LineFrame, linesOf, readFrame, requestOf } from "./input-lines.ts";

export interface ValidateDeps {
  work: Pick<BatchWork, "beginLines" | "addLines">;
  storedFiles: Pick<StoredFiles, "readNamed">;
  requestLimits(): RequestLimits;
  mostRequests: number;
}

export type Validated = { models: readonly string[]; total: number } | { faults: readonly BatchFault[] } | "lost";

/** Maximum faults to report. */
const maxFaults = 100;
/** Maximum models of one batch. */
export const maxModels = 100;
const linesAtOnce = 200;

/**
 * Checks the batch's input file and stores its lines. Returns `lost` if another process took over the claim. Rejects if
 * the input file cannot be read now.
 */
export async function validateBatch(batch: Batch, claim: Claim, deps: ValidateDeps): Promise<Validated> {
  if (!(await deps.work.beginLines(batch.id, claim))) return "lost";
  const reading = new Reading(batch, claim, deps);
  try {
    for await (const found of linesOf(deps.storedFiles.readNamed(batch.inputFileId), deps.requestLimits())) {
      if (!reading.take(found)) break;
      if (!(await reading.flush(linesAtOnce))) return "lost";
    }
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "not_found") throw error;
    return { faults: [fault("input_file_not_found", "The content of the input file is not there.", null)] };
  }
  return (await reading.flush(1)) ? reading.result : "lost";
}

class Reading {
  readonly #batch: Batch;
  readonly #claim: Claim;
  readonly #deps: ValidateDeps;
  /** Line numbers by custom id. */
  readonly #ids = new Map<string, number>();
  readonly #models = new Set<string>();
  readonly #faults: BatchFault[] = [];
  #lines: BatchLine[] = [];

  constructor(batch: Batch, claim: Claim, deps: ValidateDeps) {
    this.#batch = batch;
    this.#claim = claim;
    this.#deps = deps;
  }

  /** Checks and collects one line. Returns false if no further line needs to be read. */
  take({ line, start, end, bytes }: FoundLine): boolean {
    const { id: batchId, endpoint } = this.#batch;
    const { mostRequests } = this.#deps;
    try {
      const frame = readFrame(bytes, endpoint, this.#deps.requestLimits());
      const { customId } = frame;
      const before = this.#ids.get(customId);
      if (before !== undefined) {
        throw new GatewayError("invalid_request", `custom_id: is that of line ${before} already; give each its own.`, {
          param: "custom_id",
        });
      }
      this.#ids.set(customId, line);
      const asked = this.#modelOf(frame);
      // A model name that cannot be stored becomes empty, and the line fails when it runs.
      const model = isKeepable(asked) ? asked : "";
      this.#models.add(model);
      if (this.#faults.length === 0) this.#lines.push({ batchId, line, customId, model, start, end });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#faults.push(fault(error.code, error.message, line, error.param));
    }
    if (this.#ids.size > mostRequests) {
      this.#faults.push(fault("too_many_requests", `A batch may have at most ${mostRequests} requests.`, line));
      return false;
    }
    if (this.#models.size > maxModels) {
      this.#faults.push(fault("too_many_models", `A batch may ask for at most ${maxModels} models.`, line));
      return false;
    }
    return this.#faults.length < maxFaults;
  }

  /**
   * Returns the model of the line's request. Throws if the request is invalid, except in Anthropic's form, where the
   * error becomes the line's result.
   */
  #modelOf(frame: LineFrame): string {
    try {
      return requestOf(frame, this.#batch.endpoint, this.#deps.requestLimits()).model;
    } catch (error) {
      if (this.#batch.form !== "anthropic") throw error;
      const { model } = frame.body;
      return typeof model === "string" ? model.slice(0, maxModelIdLength) : "";
    }
  }

  /**
   * Stores the collected lines if there are at least `atLeast`, then yields to other work. Returns false if the claim
   * was lost.
   */
  async flush(atLeast: number): Promise<boolean> {
    if (this.#lines.length < atLeast) return true;
    const lines = this.#lines;
    this.#lines = [];
    const isMine = await this.#deps.work.addLines(this.#batch.id, lines, this.#claim);
    await new Promise((resolve) => setImmediate(resolve));
    return isMine;
  }

  get result(): Validated {
    if (this.#faults.length > 0) return { faults: this.#faults };
    if (this.#ids.size === 0) return { faults: [fault("empty_file", "The input file has no requests.", null)] };
    return { models: [...this.#models], total: this.#ids.size };
  }
}

function fault(code: string, message: string, line: number | null, param?: string): BatchFault {
  return { code, message, line, param: param ?? null };
}
