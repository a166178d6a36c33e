// Processes batches in the background: validates them, answers their lines in idle slots, and writes the results.
import type { Clock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Batch, BatchLine, BatchWork, Claim, ClaimedLine, UnpaidLine } from "../domain/batches/batch.ts";
import type { ObjectStore } from "../domain/files/object-store.ts";
import { defaultPriority } from "../domain/models/policies/priority.ts";
import type { UsageBegin, UsageEnd } from "../domain/usage/usage.ts";
import type { StoredFiles } from "../files/stored-files.ts";
import type { InferenceDeps } from "../inference/call.ts";
import { stoppingError } from "../inference/stopping.ts";
import { requireScope } from "../policy/authorize.ts";
import type { Authenticator } from "../policy/credentials/authenticate.ts";
import type { OpenRequests } from "../policy/open-requests.ts";
import type { RequestLimits } from "../requests/decode/decode-request.ts";
import { toGatewayError } from "../wire/errors.ts";
import { BatchCatalog } from "./batch-catalog.ts";
import { finishBatch } from "./finish-batch.ts";
import { batchEndpoints, readFrame, requestOf } from "./input-lines.ts";
import { LineRun } from "./line-run.ts";
import { answeredLine, refusedLine, requestIdOf } from "./output-lines.ts";
import { validateBatch } from "./validate-batch.ts";

export interface BatchSettings {
  maxRequests: number;
  /** Maximum concurrent lines. */
  concurrency: number;
  priceFactor: number;
}

/** Time settings of the runner. Tests use shorter times. */
export interface BatchTimes {
  /** Interval of the poll for new batches and for batches of crashed processes. */
  pollMs?: number;
  /** Lease of a claimed batch or line. The process renews the lease while it works. */
  leaseSeconds?: number;
}

export interface BatchRunnerOptions {
  work: BatchWork;
  storedFiles: StoredFiles;
  objects: Pick<ObjectStore, "read">;
  authenticator: Pick<Authenticator, "behind">;
  openRequests: Pick<OpenRequests, "enter">;
  /** Charges a line on the ledger once, even if called several times. */
  charge(begin: UsageBegin, end: UsageEnd): Promise<void>;
  /** Resolves when the charges are in the database. Rejects if they cannot be written. */
  flush(): Promise<void>;
  inference: InferenceDeps;
  /** Returns the current settings. A reload of the configuration may change them, so no result is kept. */
  settings(): BatchSettings;
  requestLimits(): RequestLimits;
  /** True if no other process works on the same batches. Claims found at the start then belong to a crashed process. */
  isAlone: boolean;
  clock: Clock;
  log: Log;
  times?: BatchTimes | undefined;
}

const [defaultPollMs, defaultLeaseSeconds] = [1_000, 30];
/** Interval of the check for idle slots. The end of a line triggers this check too. */
const idleMs = 100;
/** Maximum batches whose lines are processed at a time. */
const maxOpen = 1_000;
/** Attempts after which an upstream's error becomes the result of the line. */
const maxAttempts = 8;
const maxWaitSeconds = 60;
/**
 * Seconds until the retry of a line that exceeds a quota of its own tag: if the quota is used up, and if other lines
 * have reserved the rest.
 */
const [spentQuotaSeconds, reservedQuotaSeconds] = [300, 10];
/** Time that a closing server waits for lines in progress. */
const closeMs = 3_000;
/** Pause before the result of a line is written again after the database refused it. */
const writeAgainMs = 1_000;
/** Delay before the runner repeats a failed validation or finalization of a batch. */
const stepAgainSeconds = 5;
const chargedAtOnce = 200;
const forgottenAtOnce = 200;

/**
 * Error codes of temporary errors. After such an error, a line is retried without a maximum of attempts until its batch
 * ends.
 */
const passing = new Set(["rate_limit_exceeded", "service_unavailable"]);
const ofServers = new Set(["upstream_error", "upstream_timeout", "internal_error"]);

/** The outcome of an attempt at a line: answered, failed for good, stopped for a live request, or to be repeated. */
export const lineEnds = ["answered", "failed", "gave_way", "again"] as const;
export type LineEnd = (typeof lineEnds)[number];

/** Metrics of this process: its current batches and lines, and how its attempts ended since the start. */
export interface BatchFigures {
  /** Batches with open work in any process, as of the last poll. */
  open: number;
  running: number;
  ended: Readonly<Record<LineEnd, number>>;
}

interface Running {
  batch: Batch;
  line: number;
  model: string;
  stop(reason: GatewayError): void;
  run: LineRun | undefined;
}

export class BatchRunner {
  readonly #options: BatchRunnerOptions;
  readonly #claim: Claim;
  readonly #catalog: BatchCatalog;
  readonly #timers: ReturnType<typeof setInterval>[];
  readonly #running = new Map<string, Running>();
  /**
   * Batches with open lines, as of the last poll. If a claim finds no line of a batch, the batch is in `#empty` until
   * the next poll.
   */
  #open: readonly Batch[] = [];
  readonly #empty = new Set<string>();
  /**
   * The end of each pause, in monotonic milliseconds. The key names the paused batch, or a model within a batch. A
   * limit or a lack of slots causes a pause.
   */
  readonly #resting = new Map<string, number>();
  /** Lines that were charged but are not yet marked as paid in the database. */
  #paid: Pick<BatchLine, "batchId" | "line">[] = [];
  #polling: Promise<void> | undefined;
  #stepping: Promise<void> | undefined;
  /** The batch that is being validated or finalized. */
  #stepped: string | undefined;
  #filling: Promise<void> | undefined;
  /** The account whose batch was validated or finalized last. Batches of other accounts come first. */
  #lastAccount = "";
  #renewMs = 0;
  #isClosed = false;
  #hasStarted = false;
  #isFailing = false;
  readonly #ended: Record<LineEnd, number> = { answered: 0, failed: 0, gave_way: 0, again: 0 };

  constructor(options: BatchRunnerOptions) {
    this.#options = options;
    const { pollMs = defaultPollMs, leaseSeconds = defaultLeaseSeconds } = options.times ?? {};
    this.#claim = { id: Bun.randomUUIDv7(), leaseSeconds };
    this.#catalog = new BatchCatalog(options.inference.catalog, () => options.settings().priceFactor);
    this.#timers = [setInterval(() => this.poll(), pollMs), setInterval(() => this.#fill(), idleMs)];
    for (const timer of this.#timers) timer.unref();
  }

  get figures(): BatchFigures {
    return { open: this.#open.length, running: this.#running.size, ended: this.#ended };
  }

  /** Polls for work at once, for example after a new batch. */
  poll(): void {
    if (this.#isClosed) return;
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
      this.#fill();
    });
  }

  /** Releases claimed work, so that other processes can continue. Resolves when the runner no longer uses the store. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    for (const { stop } of this.#running.values()) stop(stoppingError());
    const ended = async () => {
      await Promise.all([this.#polling, this.#stepping, this.#filling]);
      while (this.#running.size > 0) await Bun.sleep(5);
      // If lines cannot be marked as paid here, the next process charges them again. Charging a line twice has no
      // effect.
      await this.#reportPaid().catch(() => {});
    };
    await Promise.race([ended(), Bun.sleep(closeMs)]);
  }

  async #poll(): Promise<void> {
    const { work, clock, log, isAlone } = this.#options;
    try {
      if (!this.#hasStarted && isAlone) await work.releaseAll();
      this.#hasStarted = true;
      await this.#renew();
      await this.#reportPaid();
      await this.#payUnpaid();
      await work.endDue(clock.nowSeconds());
      const open = await work.open(maxOpen);
      this.#stopEnded(open);
      this.#open = open;
      this.#empty.clear();
      this.#step();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.error("batch_look_failed", { detail: detailOf(error) });
      this.#isFailing = true;
    }
  }

  /** Renews the leases of work in progress once a third of the lease has passed. */
  async #renew(): Promise<void> {
    const { clock, work } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#renewMs || (this.#running.size === 0 && this.#stepped === undefined)) return;
    this.#renewMs = nowMs + (this.#claim.leaseSeconds * 1_000) / 3;
    const lines = [...this.#running.values()].map(({ batch, line }) => ({ batchId: batch.id, line }));
    await work.renew(this.#claim, { batchId: this.#stepped, lines });
  }

  /** Stops the running lines of cancelled and expired batches, to free their slots. */
  #stopEnded(open: readonly Batch[]): void {
    const ids = new Set(open.map(({ id }) => id));
    for (const { batch, stop } of this.#running.values()) {
      if (!ids.has(batch.id)) stop(new GatewayError("service_unavailable", "The batch has ended."));
    }
  }

  /** Validates or finalizes batches one after another, while lines run. */
  #step(): void {
    if (this.#isClosed) return;
    this.#stepping ??= this.#steps().finally(() => {
      this.#stepping = undefined;
    });
  }

  async #steps(): Promise<void> {
    const { work, log } = this.#options;
    try {
      while (!this.#isClosed) {
        const batch = await work.claimBatch(this.#claim, this.#lastAccount);
        if (!batch) break;
        this.#lastAccount = batch.accountId;
        this.#stepped = batch.id;
        await this.#stepOf(batch).finally(() => {
          this.#stepped = undefined;
        });
        this.poll();
      }
      while (!this.#isClosed && (await work.forgetLines(forgottenAtOnce)) > 0) await Bun.sleep(10);
    } catch (error) {
      log.error("batch_step_failed", { detail: detailOf(error) });
    }
  }

  async #stepOf(batch: Batch): Promise<void> {
    const { work, storedFiles, clock, log, requestLimits } = this.#options;
    try {
      if (batch.status === "validating") {
        const mostRequests = this.#options.settings().maxRequests;
        const validated = await validateBatch(batch, this.#claim, { work, storedFiles, requestLimits, mostRequests });
        if (validated === "lost") return;
        const now = clock.nowSeconds();
        if ("faults" in validated) await work.fail(batch.id, this.#claim, validated.faults, now);
        else await work.begin({ id: batch.id, ...validated }, this.#claim, now);
        return;
      }
      await this.#pay(() => work.unpaid(chargedAtOnce, batch.id));
      await finishBatch(batch, this.#claim, { work, storedFiles, nowSeconds: () => clock.nowSeconds() });
    } catch (error) {
      log.error("batch_step_failed", { batch: batch.id, detail: detailOf(error) });
      await work.release(batch.id, this.#claim, stepAgainSeconds);
    }
  }

  /** Charges lines that a crashed process answered but did not charge. */
  async #payUnpaid(): Promise<void> {
    await this.#pay(() => this.#options.work.unpaid(chargedAtOnce));
  }

  async #pay(read: () => Promise<UnpaidLine[]>): Promise<void> {
    for (let unpaid = await read(); unpaid.length > 0; unpaid = await read()) {
      await Promise.all(unpaid.map(({ usage: { begin, end } }) => this.#options.charge(begin, end)));
      await this.#options.flush();
      await this.#options.work.paid(unpaid);
    }
  }

  /**
   * Marks lines as paid once their charges are in the database. Until then the charges are only in this process's
   * spool, which no other process reads.
   */
  async #reportPaid(): Promise<void> {
    const paid = this.#paid;
    if (paid.length === 0) return;
    this.#paid = [];
    try {
      await this.#options.flush();
      await this.#options.work.paid(paid);
    } catch (error) {
      this.#paid.push(...paid);
      throw error;
    }
  }

  /** Claims lines for idle slots. */
  #fill(): void {
    if (this.#isClosed || this.#options.inference.stopping.begun || this.#open.length === 0) return;
    this.#filling ??= this.#fillIdle().finally(() => {
      this.#filling = undefined;
    });
  }

  async #fillIdle(): Promise<void> {
    const { work, settings, log } = this.#options;
    try {
      for (;;) {
        const room = settings().concurrency - this.#running.size;
        const next = room > 0 && !this.#isClosed ? this.#next() : undefined;
        if (!next) return;
        const { batch, models, slots } = next;
        const lines = await work.claimLines(batch.id, models, Math.min(room, slots), this.#claim);
        if (lines.length === 0) this.#empty.add(batch.id);
        // After an outage, a lease of this process may have expired, so it may claim a running line again. The line is
        // not sent twice.
        for (const line of lines) if (!this.#running.has(nameOf(line))) void this.#answer(batch, line);
      }
    } catch (error) {
      log.error("batch_claim_failed", { detail: detailOf(error) });
      this.#open = [];
    }
  }

  /**
   * Returns the next batch to claim lines of. Prefers the account with the fewest running lines, then the batch with
   * the fewest.
   */
  #next(): { batch: Batch; models: string[]; slots: number } | undefined {
    const underWay = new Map<string, number>();
    for (const { batch } of this.#running.values()) {
      for (const id of [batch.accountId, batch.id]) underWay.set(id, (underWay.get(id) ?? 0) + 1);
    }
    const load = ({ id, accountId }: Batch) => [underWay.get(accountId) ?? 0, underWay.get(id) ?? 0] as const;
    const nowMs = this.#options.clock.monotonicMs();
    for (const [id, untilMs] of this.#resting) if (untilMs <= nowMs) this.#resting.delete(id);
    const waiting = this.#open
      .filter(({ id }) => !this.#empty.has(id) && !this.#resting.has(id))
      .toSorted((a, b) => load(a)[0] - load(b)[0] || load(a)[1] - load(b)[1]);
    const isShared = new Set(waiting.map(({ accountId }) => accountId)).size > 1;
    for (const batch of waiting) {
      const awake = batch.models.filter((model) => !this.#resting.has(ofModel(batch, model)));
      const idle = awake.map((model) => ({ model, places: this.#idleSlots(batch, model) }));
      const models = idle.filter(({ places: slots }) => slots > 0);
      const slots = models.reduce((most, one) => Math.max(most, one.places), 0);
      // If several accounts wait, each claim takes one line, so that all get the same share.
      if (slots > 0) return { batch, models: models.map(({ model }) => model), slots: isShared ? 1 : slots };
    }
    return undefined;
  }

  /**
   * Returns the number of idle slots for lines of this model. For an unknown model, lines run one at a time, and fail.
   */
  #idleSlots({ endpoint, accountId }: Batch, name: string): number {
    const { capacity } = this.#options.inference;
    const operation = batchEndpoints.get(endpoint);
    const model = this.#catalog.find(name);
    if (!operation || !model || model.deployments.length === 0) return 1 - this.#starting(name);
    const whose = { priority: defaultPriority, accountId, partyId: accountId };
    const request = { ...whose, operation, stream: false, width: 1, model: name, onWanted: () => {} };
    const open = model.deployments.filter(({ engine }) => engine.accepts !== false);
    return capacity.idleSlots(open, request) - this.#starting(name);
  }

  /** Counts the running lines that have not requested a slot yet. */
  #starting(name: string): number {
    let count = 0;
    for (const { model, run } of this.#running.values()) if (model === name && !run?.hasAsked) count++;
    return count;
  }

  async #answer(batch: Batch, line: ClaimedLine): Promise<void> {
    const { log } = this.#options;
    const running: Running = {
      ...{ batch, line: line.line, model: line.model, run: undefined },
      stop: (reason) => running.run?.stop(reason),
    };
    const name = nameOf(line);
    this.#running.set(name, running);
    try {
      await this.#answerLine(batch, line, running);
    } catch (error) {
      // The line needs no cleanup: its lease expires, and another process claims the line.
      log.error("batch_line_failed", { batch: batch.id, line: line.line, detail: detailOf(error) });
    } finally {
      this.#running.delete(name);
      this.#fill();
    }
  }

  async #answerLine(batch: Batch, line: ClaimedLine, running: Running): Promise<void> {
    const { work } = this.#options;
    let text: string;
    let isError = false;
    try {
      text = answeredLine(batch, line.line, line.customId, await this.#ask(batch, line, running));
    } catch (thrown) {
      const error = toGatewayError(thrown);
      const again = this.#again(error, line, running);
      if (again) {
        this.#ended[running.run?.gaveWay ? "gave_way" : "again"]++;
        const untilMs = this.#options.clock.monotonicMs() + again.inSeconds * 1_000;
        const paused = again.failed ? undefined : pausedBy(error, batch, line.model);
        if (paused !== undefined) this.#resting.set(paused, untilMs);
        await this.#written(() => work.releaseLine(line, this.#claim, again));
        return;
      }
      isError = true;
      text = refusedLine(batch, line.line, line.customId, error);
    }
    const usage = running.run?.usage;
    // The answer and its usage are one write, so a crash leaves either both or neither.
    if (!(await this.#written(() => work.answered(line, { text, isError, usage }, this.#claim)))) return;
    this.#ended[isError ? "failed" : "answered"]++;
    if (!usage) return;
    await this.#options.charge(usage.begin, usage.end);
    this.#paid.push(line);
  }

  /**
   * Repeats the write while the database is unavailable. Otherwise the answer would be lost and the request sent again.
   */
  async #written<Result>(write: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        const isAway = error instanceof GatewayError && error.code === "service_unavailable";
        if (!isAway || this.#isClosed) throw error;
        await Bun.sleep(writeAgainMs);
      }
    }
  }

  /** Resolves with the JSON of the response. */
  async #ask(batch: Batch, line: ClaimedLine, running: Running): Promise<string> {
    const { authenticator, openRequests, inference, requestLimits } = this.#options;
    const principal = await authenticator.behind(batch.keyId);
    requireScope(principal, "chat:write");
    const slot = openRequests.enter(principal);
    const bytes = line.end - line.start;
    const refusal = slot.memoryAccount.take("requests", bytes);
    try {
      if (refusal) throw refusal;
      const limits = requestLimits();
      const frame = readFrame(await this.#bytesOf(batch, line), batch.endpoint, limits);
      const request = requestOf(frame, batch.endpoint, limits);
      const requestId = requestIdOf(batch, line.line);
      const run = new LineRun({ requestId, principal, request, memoryAccount: slot.memoryAccount });
      running.run = run;
      if (this.#isClosed) throw stoppingError();
      return await run.ask({ ...inference, catalog: this.#catalog });
    } finally {
      if (!refusal) slot.memoryAccount.release("requests", bytes);
      slot.release();
    }
  }

  async #bytesOf({ inputFileId }: Batch, { start, end }: BatchLine): Promise<Buffer> {
    const pieces = await Array.fromAsync(this.#options.objects.read(inputFileId, { start, end }));
    return Buffer.concat(pieces);
  }

  /** Returns when to repeat the line; undefined if the error is the line's result. */
  #again(error: GatewayError, { attempts }: ClaimedLine, { batch, run }: Running) {
    if (run?.gaveWay || this.#isClosed) return { inSeconds: 0, failed: false };
    const inSeconds = Math.min(maxWaitSeconds, Math.ceil(error.retryAfterSeconds ?? 5 ** attempts));
    // A line that always exceeds a limit would hold up its batch until the batch expires.
    const neverFits = error.shouldRetry === false && error.retryAfterSeconds === undefined;
    if (passing.has(error.code) && !neverFits) return { inSeconds, failed: false };
    const resetsAt = error.quota?.resets_at ?? null;
    // If the quota resets before the batch expires, the line waits for the reset.
    if (resetsAt !== null && resetsAt < batch.expiresAt) return { inSeconds: quotaSeconds(error), failed: false };
    if (ofServers.has(error.code) && attempts + 1 < maxAttempts) return { inSeconds, failed: true };
    return undefined;
  }
}

/**
 * Returns what to pause after a line's error: the batch, or one model within the batch. Other lines there would mostly
 * fail for the same reason. Undefined if only lines with the same tag would fail, such as the lines of one end user.
 */
function pausedBy({ quota }: GatewayError, batch: Batch, model: string): string | undefined {
  if (quota && quota.tag !== null) return undefined;
  return quota && quota.models !== null ? ofModel(batch, model) : batch.id;
}

function quotaSeconds({ quota }: GatewayError): number {
  if (!quota || quota.tag === null) return maxWaitSeconds;
  return quota.used + quota.needed > quota.limit ? spentQuotaSeconds : reservedQuotaSeconds;
}

function ofModel({ id }: Batch, model: string): string {
  return `${id} ${model}`;
}

function nameOf({ batchId, line }: Pick<BatchLine, "batchId" | "line">): string {
  return `${batchId} ${line}`;
}

function detailOf(error: unknown): string {
  const { detail, message } = (error ?? {}) as { detail?: unknown; message?: unknown };
  return String(detail ?? message ?? error);
}
