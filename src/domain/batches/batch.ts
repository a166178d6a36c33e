// Batches of requests that are answered when nobody else wants the places: their records, their lines, and who works on them.
import type { MadeBy } from "../files/stored-file.ts";
import type { ResponseOwner } from "../models/stored-response.ts";
import type { UsageBegin, UsageEnd } from "../usage/usage.ts";

/** Whose API it was made by: the lines of the answers differ. */
export type BatchForm = "openai" | "anthropic";

/** Whose lines are not there yet, who waits for lines, whose answers are being written, and how it ended. */
export type BatchStatus =
  | "validating"
  | "in_progress"
  | "finalizing"
  | "completed"
  | "failed"
  | "expired"
  | "cancelled";
/** How one that is finalized will have ended. */
export type BatchEnding = Extract<BatchStatus, "completed" | "expired" | "cancelled">;

export interface BatchFault {
  code: string;
  message: string;
  /** From 1 on; null: of none in particular. */
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
  /** Set once it is to end; one of Anthropic's that is cancelled while it is validated ends after that. */
  ending: BatchEnding | null;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds: what is not answered by then is not answered any more. */
  expiresAt: number;
  inProgressAt: number | null;
  finalizingAt: number | null;
  cancellingAt: number | null;
  endedAt: number | null;
  /** Ids of the models that its lines ask for, as these name them. */
  models: readonly string[];
  total: number;
  completed: number;
  failed: number;
  outputFileId: string | null;
  errorFileId: string | null;
  /** Seconds for which its files are kept; null: as usual. */
  keepSeconds: number | null;
  faults: readonly BatchFault[];
  metadata: Readonly<Record<string, string>> | null;
}

/** One request of a batch. */
export interface BatchLine {
  batchId: string;
  /** From 1 on. */
  line: number;
  customId: string;
  model: string;
  /** Bytes of the input file: from `start`, before `end`. */
  start: number;
  end: number;
}

export interface ClaimedLine extends BatchLine {
  /** Times that a model was asked before, and failed. */
  attempts: number;
}

/** The usage of a line as it is charged. */
export interface LineUsage {
  begin: UsageBegin;
  end: UsageEnd;
}

export interface LineAnswer {
  /** The line of the output. */
  text: string;
  isError: boolean;
  /** What is charged for it; undefined where it did not come to that. */
  usage: LineUsage | undefined;
}

/** A line as far as it came; the text of an answer is undefined where it does not open. */
export interface AnsweredLine extends Pick<BatchLine, "line" | "customId"> {
  /** It is null where nobody answered the line. */
  answer: { text: string | undefined; isError: boolean } | null;
}

/** An answer that may not be on the ledger yet. */
export interface UnpaidLine extends Pick<BatchLine, "batchId" | "line"> {
  usage: LineUsage;
}

/** By whom something is worked on: what is claimed is nobody else's until the lease is over, or it was given back. */
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
  /** False where its account has so many open ones already. */
  create(batch: Batch, maxOpen: number): Promise<boolean>;
  find(owner: ResponseOwner, id: string): Promise<Batch | undefined>;
  /** Newest first. Undefined where `after` or `before` names none. */
  list(owner: ResponseOwner, page: BatchPage): Promise<Batch[] | undefined>;
  /** Nobody answers a line of it from then on; one that had ended stays as it is. Undefined where there is none. */
  cancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<Batch | undefined>;
  /** Only one that has ended: with what is left of its lines. False where there is none such. */
  delete(owner: ResponseOwner, id: string): Promise<boolean>;
  /** Deletes what ended before that time, `limit` at most; gives how many. */
  deleteEnded(before: number, limit: number): Promise<number>;
}

/** The claims of a process that it works on. */
export interface UnderWay {
  /** The batch that is validated or finalized; undefined: none is. */
  batchId: string | undefined;
  lines: readonly Pick<BatchLine, "batchId" | "line">[];
}

/** The part of the store by which replicas share the work. */
export interface BatchWork {
  /** Takes one that is to be validated or finalized: the oldest of the account whose turn is behind that of `afterAccount`. */
  claimBatch(claim: Claim, afterAccount?: string): Promise<Batch | undefined>;
  /** Lines that an earlier validation left are gone. False where it is claimed no more, as for the others. */
  beginLines(batchId: string, claim: Claim): Promise<boolean>;
  addLines(batchId: string, lines: readonly BatchLine[], claim: Claim): Promise<boolean>;
  begin(batch: Pick<Batch, "id" | "models" | "total">, claim: Claim, nowSeconds: number): Promise<boolean>;
  fail(batchId: string, claim: Claim, faults: readonly BatchFault[], nowSeconds: number): Promise<boolean>;
  finish(
    batch: Pick<Batch, "id" | "ending" | "outputFileId" | "errorFileId">,
    claim: Claim,
    nowSeconds: number,
  ): Promise<boolean>;
  /** Gives a batch back, to be taken again from that time on: meanwhile the others have their turn. */
  release(batchId: string, claim: Claim, inSeconds: number): Promise<void>;
  /** Those with lines to be answered, oldest first. */
  open(limit: number): Promise<Batch[]>;
  /** Takes lines that ask for one of these models, first ones first. */
  claimLines(batchId: string, models: readonly string[], limit: number, claim: Claim): Promise<ClaimedLine[]>;
  /** Keeps an answer, and counts it. False where the line is claimed no more, or its batch is to end: then the answer is nobody's. */
  answered(line: ClaimedLine, answer: LineAnswer, claim: Claim): Promise<boolean>;
  /** Gives lines back, to be taken again from that time on; `failed`: after an attempt that failed. */
  releaseLine(line: ClaimedLine, claim: Claim, again: { inSeconds: number; failed: boolean }): Promise<void>;
  /**
   * Keeps the lease of what a process works on. A batch or line whose work ended without a word in the database is not named,
   * so that its lease ends. Answered lines are not renewed either: any process puts them on the ledger after the lease.
   */
  renew(claim: Claim, underWay: UnderWay): Promise<void>;
  /** All that is claimed by processes that are gone is free; only where no other process works on it. */
  releaseAll(): Promise<void>;
  /** Lets those end whose lines are all answered, or whose time is over. */
  endDue(nowSeconds: number): Promise<void>;
  /** Answers that nobody has put on the ledger, and nobody is about to; those of one batch, whoever is, where it is named. */
  unpaid(limit: number, batchId?: string): Promise<UnpaidLine[]>;
  /** They are on the ledger. */
  paid(lines: readonly Pick<BatchLine, "batchId" | "line">[]): Promise<void>;
  /** Lines behind `after` in their order, `limit` at most. */
  lines(batchId: string, after: number, limit: number): Promise<AnsweredLine[]>;
  /** Deletes lines of batches that have ended, `limit` at most; gives how many. Each is on the ledger by then. */
  forgetLines(limit: number): Promise<number>;
}
