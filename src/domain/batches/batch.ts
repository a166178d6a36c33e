// Batches of requests, which use only idle slots: their records and lines, and how processes claim them.
import type { MadeBy } from "../files/stored-file.ts";
import type { ResponseOwner } from "../models/stored-response.ts";
import type { UsageBegin, UsageEnd } from "../usage/usage.ts";

/** The API that made the batch, which decides the format of the result lines. */
export type BatchForm = "openai" | "anthropic";

/**
 * `validating`: the lines are being read. `in_progress`: lines are being answered. `finalizing`: the result files are
 * being written. The other statuses are final.
 */
export type BatchStatus =
  | "validating"
  | "in_progress"
  | "finalizing"
  | "completed"
  | "failed"
  | "expired"
  | "cancelled";
/** The final status of a batch that is being finalized. */
export type BatchEnding = Extract<BatchStatus, "completed" | "expired" | "cancelled">;

export interface BatchFault {
  code: string;
  message: string;
  /** Line number, from 1 on. Null if the fault does not concern a single line. */
  line: number | null;
  param: string | null;
}

export interface BatchTokens {
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
  reasoningTokens: number;
}

export interface Batch extends MadeBy, BatchTokens {
  id: string;
  form: BatchForm;
  /** Path of the requests, such as `/v1/chat/completions`. */
  endpoint: string;
  inputFileId: string;
  status: BatchStatus;
  /**
   * The final status, set once it is decided how the batch ends. An Anthropic batch that is cancelled during validation
   * ends after the validation.
   */
  ending: BatchEnding | null;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds after which no more lines are answered. */
  expiresAt: number;
  inProgressAt: number | null;
  finalizingAt: number | null;
  cancellingAt: number | null;
  endedAt: number | null;
  /** Model ids as the lines give them. */
  models: readonly string[];
  total: number;
  completed: number;
  failed: number;
  outputFileId: string | null;
  errorFileId: string | null;
  /** Seconds for which the batch's files are kept. Null means the default. */
  keepSeconds: number | null;
  faults: readonly BatchFault[];
  metadata: Readonly<Record<string, string>> | null;
}

/** A request of a batch: one line of its input file. */
export interface BatchLine {
  batchId: string;
  /** Number of the line, from 1 on. */
  line: number;
  customId: string;
  model: string;
  /** Bytes of the line in the input file. `start` is included, `end` is not. */
  start: number;
  end: number;
}

export interface ClaimedLine extends BatchLine {
  /** Number of failed attempts so far. */
  attempts: number;
}

/** The usage to charge for a line: how its request began and ended. */
export interface LineUsage {
  begin: UsageBegin;
  end: UsageEnd;
}

export interface LineAnswer {
  /** The result line for the output file. */
  text: string;
  isError: boolean;
  /** The usage to charge; undefined if the answer is not charged. */
  usage: LineUsage | undefined;
}

/** A line with its result. `text` is undefined if the stored answer cannot be decrypted. */
export interface AnsweredLine extends Pick<BatchLine, "line" | "customId"> {
  /** Null if the line was not answered. */
  answer: { text: string | undefined; isError: boolean } | null;
}

/** An answered line whose usage may not be in the ledger yet. */
export interface UnpaidLine extends Pick<BatchLine, "batchId" | "line"> {
  usage: LineUsage;
}

/** Identifies a process that claims work. The claim holds until its lease ends or the process releases the work. */
export interface Claim {
  id: string;
  leaseSeconds: number;
}

export interface BatchPage {
  form: BatchForm | undefined;
  after: string | undefined;
  before: string | undefined;
  limit: number;
}

export interface BatchStore {
  /** Stores a batch. Returns false if the account already has `maxOpen` open batches. */
  create(batch: Batch, maxOpen: number): Promise<boolean>;
  find(owner: ResponseOwner, id: string): Promise<Batch | undefined>;
  /** Lists batches, newest first. Returns undefined if the batch `after` or `before` does not exist. */
  list(owner: ResponseOwner, page: BatchPage): Promise<Batch[] | undefined>;
  /**
   * Cancels a batch: no more lines are answered. A batch that has ended stays unchanged. Returns undefined if the batch
   * does not exist.
   */
  cancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<Batch | undefined>;
  /** Deletes an ended batch with its remaining lines. Returns false if no ended batch has this id. */
  delete(owner: ResponseOwner, id: string): Promise<boolean>;
  /** Deletes up to `limit` batches that ended before the time `before`, and returns their number. */
  deleteEnded(before: number, limit: number): Promise<number>;
}

/** The claimed work that a process has not finished yet. */
export interface UnderWay {
  /** The batch that the process validates or finalizes. Undefined if there is none. */
  batchId: string | undefined;
  lines: readonly Pick<BatchLine, "batchId" | "line">[];
}

/** The part of the store through which replicas share the work. */
export interface BatchWork {
  /**
   * Claims a batch to validate or finalize. Accounts take turns: the account after `afterAccount` comes first, with its
   * oldest batch.
   */
  claimBatch(claim: Claim, afterAccount?: string): Promise<Batch | undefined>;
  /**
   * Deletes the lines that an earlier validation left. This method and the next four return false if the claim was
   * lost.
   */
  beginLines(batchId: string, claim: Claim): Promise<boolean>;
  addLines(batchId: string, lines: readonly BatchLine[], claim: Claim): Promise<boolean>;
  begin(batch: Pick<Batch, "id" | "models" | "total">, claim: Claim, nowSeconds: number): Promise<boolean>;
  fail(batchId: string, claim: Claim, faults: readonly BatchFault[], nowSeconds: number): Promise<boolean>;
  finish(
    batch: Pick<Batch, "id" | "ending" | "outputFileId" | "errorFileId">,
    claim: Claim,
    nowSeconds: number,
  ): Promise<boolean>;
  /** Releases a batch. It can be claimed again after `inSeconds`, so that other batches come first. */
  release(batchId: string, claim: Claim, inSeconds: number): Promise<void>;
  /** Returns batches with unanswered lines, oldest first. */
  open(limit: number): Promise<Batch[]>;
  /** Claims lines that request one of these models, in the order of the lines. */
  claimLines(batchId: string, models: readonly string[], limit: number, claim: Claim): Promise<ClaimedLine[]>;
  /**
   * Stores an answer and counts it. Drops the answer and returns false if the claim was lost or the batch is about to
   * end.
   */
  answered(line: ClaimedLine, answer: LineAnswer, claim: Claim): Promise<boolean>;
  /** Releases a line, which can be claimed again after `inSeconds`. `failed` is true if an attempt failed. */
  releaseLine(line: ClaimedLine, claim: Claim, again: { inSeconds: number; failed: boolean }): Promise<void>;
  /**
   * Renews the leases of unfinished work. Work that is not listed in `underWay` loses its lease after a while. Answered
   * lines are not renewed: any process may record their usage afterwards.
   */
  renew(claim: Claim, underWay: UnderWay): Promise<void>;
  /** Releases the claims of all processes. Call this only if no other process works on batches. */
  releaseAll(): Promise<void>;
  /** Ends batches whose lines are all answered or that have expired. */
  endDue(nowSeconds: number): Promise<void>;
  /**
   * Returns answered lines whose usage is not in the ledger, without those that a process has claimed. With `batchId`,
   * returns all such lines of that batch.
   */
  unpaid(limit: number, batchId?: string): Promise<UnpaidLine[]>;
  /** Records that the lines' usage is in the ledger. */
  paid(lines: readonly Pick<BatchLine, "batchId" | "line">[]): Promise<void>;
  /** Returns up to `limit` lines in order, beginning after the line number `after`. */
  lines(batchId: string, after: number, limit: number): Promise<AnsweredLine[]>;
  /**
   * Deletes up to `limit` lines of ended batches and returns their number. The usage of these lines is in the ledger.
   */
  forgetLines(limit: number): Promise<number>;
}
