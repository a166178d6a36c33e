// Batches of requests, which use only free slots: their records, their lines, and the claims of processes.
import type { MadeBy } from "../files/stored-file.ts";
import type { ResponseOwner } from "../models/stored-response.ts";
import type { UsageBegin, UsageEnd } from "../usage/usage.ts";

/** The API that made the batch, which decides the format of the result lines. */
export type BatchForm = "openai" | "anthropic";

/**
 * `validating`: the lines are being read; `in_progress`: lines are being answered; `finalizing`: the answers are being
 * written. The others are final.
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
  /** Line number, from 1 on; null: the fault concerns no particular line. */
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
  /** Set when the batch is to end. An Anthropic batch that is cancelled during validation ends after the validation. */
  ending: BatchEnding | null;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds after which no line is answered any more. */
  expiresAt: number;
  inProgressAt: number | null;
  finalizingAt: number | null;
  cancellingAt: number | null;
  endedAt: number | null;
  /** Model ids that the lines request, as spelled there. */
  models: readonly string[];
  total: number;
  completed: number;
  failed: number;
  outputFileId: string | null;
  errorFileId: string | null;
  /** Seconds to keep the batch's files; null: the default. */
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
  /** Bytes of the input file: from `start`, before `end`. */
  start: number;
  end: number;
}

export interface ClaimedLine extends BatchLine {
  /** Number of failed attempts so far. */
  attempts: number;
}

/** The charged usage of a line. */
export interface LineUsage {
  begin: UsageBegin;
  end: UsageEnd;
}

export interface LineAnswer {
  /** The answer's line in the output file. */
  text: string;
  isError: boolean;
  /** The usage to charge; undefined if the answer is not charged. */
  usage: LineUsage | undefined;
}

/** A line with its result. The text of an answer is undefined if it cannot be unsealed. */
export interface AnsweredLine extends Pick<BatchLine, "line" | "customId"> {
  /** null: the line was not answered. */
  answer: { text: string | undefined; isError: boolean } | null;
}

/** An answer that may not be in the ledger yet. */
export interface UnpaidLine extends Pick<BatchLine, "batchId" | "line"> {
  usage: LineUsage;
}

/** A process's claim of work until its lease ends or it releases the work. */
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
  /** Returns false if the account has the maximum of open batches. */
  create(batch: Batch, maxOpen: number): Promise<boolean>;
  find(owner: ResponseOwner, id: string): Promise<Batch | undefined>;
  /** Lists batches, newest first. Returns undefined if `after` or `before` does not exist. */
  list(owner: ResponseOwner, page: BatchPage): Promise<Batch[] | undefined>;
  /**
   * Cancels a batch: no further line is answered. An ended batch stays unchanged. Returns undefined if there is none.
   */
  cancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<Batch | undefined>;
  /** Deletes an ended batch with its remaining lines. Returns false if there is no such ended batch. */
  delete(owner: ResponseOwner, id: string): Promise<boolean>;
  /** Deletes up to `limit` batches that ended before the time `before`, and returns their number. */
  deleteEnded(before: number, limit: number): Promise<number>;
}

/** The claimed work that a process is still doing. */
export interface UnderWay {
  /** The batch that the process validates or finalizes. Undefined: none. */
  batchId: string | undefined;
  lines: readonly Pick<BatchLine, "batchId" | "line">[];
}

/** The part of the store through which replicas share the work. */
export interface BatchWork {
  /** Claims a batch to validate or finalize: the oldest of the account whose turn follows `afterAccount`. */
  claimBatch(claim: Claim, afterAccount?: string): Promise<Batch | undefined>;
  /** Deletes the lines that an earlier validation left. Returns false if the claim is lost, as the other methods do. */
  beginLines(batchId: string, claim: Claim): Promise<boolean>;
  addLines(batchId: string, lines: readonly BatchLine[], claim: Claim): Promise<boolean>;
  begin(batch: Pick<Batch, "id" | "models" | "total">, claim: Claim, nowSeconds: number): Promise<boolean>;
  fail(batchId: string, claim: Claim, faults: readonly BatchFault[], nowSeconds: number): Promise<boolean>;
  finish(
    batch: Pick<Batch, "id" | "ending" | "outputFileId" | "errorFileId">,
    claim: Claim,
    nowSeconds: number,
  ): Promise<boolean>;
  /** Releases a batch, which can be claimed again after `inSeconds`. Meanwhile other batches get their turn. */
  release(batchId: string, claim: Claim, inSeconds: number): Promise<void>;
  /** Returns batches with unanswered lines, oldest first. */
  open(limit: number): Promise<Batch[]>;
  /** Claims lines that request one of these models, in the order of the lines. */
  claimLines(batchId: string, models: readonly string[], limit: number, claim: Claim): Promise<ClaimedLine[]>;
  /**
   * Stores an answer and counts it. Returns false, and drops the answer, if the claim is lost or the batch is to end.
   */
  answered(line: ClaimedLine, answer: LineAnswer, claim: Claim): Promise<boolean>;
  /** Releases a line, which can be claimed again after `inSeconds`. `failed`: an attempt failed. */
  releaseLine(line: ClaimedLine, claim: Claim, again: { inSeconds: number; failed: boolean }): Promise<void>;
  /**
   * Renews the leases of running work. Work that ended without a database write is left out, so its lease ends.
   * Answered lines are not renewed: any process records them in the ledger after the lease.
   */
  renew(claim: Claim, underWay: UnderWay): Promise<void>;
  /** Releases all claims, which are of dead processes. Call it only if no other process works on the batches. */
  releaseAll(): Promise<void>;
  /** Ends batches whose lines are all answered, or whose time is over. */
  endDue(nowSeconds: number): Promise<void>;
  /**
   * Returns answers that are not in the ledger and that no process is about to record. With `batchId`, returns all
   * unrecorded answers of that batch, claimed or not.
   */
  unpaid(limit: number, batchId?: string): Promise<UnpaidLine[]>;
  /** Marks lines as recorded in the ledger. */
  paid(lines: readonly Pick<BatchLine, "batchId" | "line">[]): Promise<void>;
  /** Returns up to `limit` lines after `after`, in order. */
  lines(batchId: string, after: number, limit: number): Promise<AnsweredLine[]>;
  /** Deletes up to `limit` lines of ended batches, which are in the ledger by then, and returns their number. */
  forgetLines(limit: number): Promise<number>;
}
