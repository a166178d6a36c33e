// Works on batches in the background: checks them, answers their lines while places are idle, and writes what came of them.
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
  /** Lines under way at the same time. */
  concurrency: number;
  priceFactor: number;
}

/** Times of the work; a test has less patience. */
export interface BatchTimes {
  /** How often it looks for work that others have left or brought. */
  pollMs?: number;
  /** How long what a process has claimed is nobody else's, unless it says again that it works on it. */
  leaseSeconds?: number;
}

export interface BatchRunnerOptions {
  work: BatchWork;
  storedFiles: StoredFiles;
  objects: Pick<ObjectStore, "read">;
  authenticator: Pick<Authenticator, "behind">;
  openRequests: Pick<OpenRequests, "enter">;
  /** Puts what is charged for a line on the ledger: once, however often it is told. */
  charge(begin: UsageBegin, end: UsageEnd): Promise<void>;
  /** Resolves once what was charged is in the database; rejects where it cannot be written. */
  flush(): Promise<void>;
  inference: InferenceDeps;
  /** Read each time: a reload may change them. */
  settings(): BatchSettings;
  requestLimits(): RequestLimits;
  /** Whether no other process can work on the same batches: then what is claimed at the start is what a dead one left. */
  isAlone: boolean;
  clock: Clock;
  log: Log;
  times?: BatchTimes | undefined;
}

const [defaultLookMs, defaultLeaseSeconds] = [1_000, 30];
/** How soon an idle place is seen that became free without a line's end. */
const idleMs = 100;
/** Batches of which lines are taken at a time. */
const maxOpen = 1_000;
/** Attempts after which the failure of model servers is the answer of a line. */
const maxAttempts = 8;
const maxWaitSeconds = 60;
/** How long a server that closes waits for what it has under way. */
const closeMs = 3_000;
/** The pause before the outcome of a line is written again that the database refused. */
const writeAgainMs = 1_000;
/** How soon a batch is taken again that could not be validated or finalized. */
const stepAgainSeconds = 5;
const chargedAtOnce = 200;
const forgottenAtOnce = 200;

/** Another moment helps, however often: who pays for it is told nothing, and the batch's own end ends it. */
const passing = new Set(["rate_limit_exceeded", "service_unavailable"]);
const ofServers = new Set(["upstream_error", "upstream_timeout", "internal_error"]);

/** How an attempt at a line ends: with its answer, with a failure as its answer, or for another one later. */
export const lineEnds = ["answered", "failed", "gave_way", "again"] as const;
export type LineEnd = (typeof lineEnds)[number];

/** What this process has of batches at the moment, and how its attempts at lines ended since its start. */
export interface BatchFigures {
  /** Batches with work left, whoever does it, as of the last look. */
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
  /** Those that have lines, as of the last look; of some of them nobody takes any until the next one. */
  #open: readonly Batch[] = [];
  readonly #empty = new Set<string>();
  /** Batches that were told to wait, by a limit or for want of a place: monotonic milliseconds until which they do. */
  readonly #resting = new Map<string, number>();
  /** Answers that are on the ledger, as the database is told soon. */
  #paid: Pick<BatchLine, "batchId" | "line">[] = [];
  #looking: Promise<void> | undefined;
  #stepping: Promise<void> | undefined;
  /** The batch that is validated or finalized now. */
  #stepped: string | undefined;
  #filling: Promise<void> | undefined;
  /** The account that had a batch validated or finalized last: the others come before its next one. */
  #lastAccount = "";
  #renewMs = 0;
  #isClosed = false;
  #hasStarted = false;
  #isFailing = false;
  readonly #ended: Record<LineEnd, number> = { answered: 0, failed: 0, gave_way: 0, again: 0 };

  constructor(options: BatchRunnerOptions) {
    this.#options = options;
    const { pollMs = defaultLookMs, leaseSeconds = defaultLeaseSeconds } = options.times ?? {};
    this.#claim = { id: Bun.randomUUIDv7(), leaseSeconds };
    this.#catalog = new BatchCatalog(options.inference.catalog, () => options.settings().priceFactor);
    this.#timers = [setInterval(() => this.look(), pollMs), setInterval(() => this.#fill(), idleMs)];
    for (const timer of this.#timers) timer.unref();
  }

  get figures(): BatchFigures {
    return { open: this.#open.length, running: this.#running.size, ended: this.#ended };
  }

  /** Looks for work now, as somebody brought some. */
  look(): void {
    if (this.#isClosed) return;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      this.#fill();
    });
  }

  /** Gives back what it has claimed, for others to take at once; resolves when it uses the store no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    for (const { stop } of this.#running.values()) stop(stoppingError());
    const ended = async () => {
      await Promise.all([this.#looking, this.#stepping, this.#filling]);
      while (this.#running.size > 0) await Bun.sleep(5);
      // A line that is not recorded now counts as unpaid for the next process, which charges nothing twice.
      await this.#tellPaid().catch(() => {});
    };
    await Promise.race([ended(), Bun.sleep(closeMs)]);
  }

  async #look(): Promise<void> {
    const { work, clock, log, isAlone } = this.#options;
    try {
      if (!this.#hasStarted && isAlone) await work.releaseAll();
      this.#hasStarted = true;
      await this.#renew();
      await this.#tellPaid();
      await this.#payLeft();
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

  /** Keeps the leases of what is under way, once a third of them has passed. */
  async #renew(): Promise<void> {
    const { clock, work } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#renewMs || (this.#running.size === 0 && this.#stepped === undefined)) return;
    this.#renewMs = nowMs + (this.#claim.leaseSeconds * 1_000) / 3;
    const lines = [...this.#running.values()].map(({ batch, line }) => ({ batchId: batch.id, line }));
    await work.renew(this.#claim, { batchId: this.#stepped, lines });
  }

  /** What was cancelled, or has expired, is answered by nobody: its places are for others. */
  #stopEnded(open: readonly Batch[]): void {
    const ids = new Set(open.map(({ id }) => id));
    for (const { batch, stop } of this.#running.values()) {
      if (!ids.has(batch.id)) stop(new GatewayError("service_unavailable", "The batch has ended."));
    }
  }

  /** Validates or finalizes one batch after the other, beside the lines. */
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
        this.look();
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

  /** What one that died had answered, and did not put on the ledger. */
  async #payLeft(): Promise<void> {
    await this.#pay(() => this.#options.work.unpaid(chargedAtOnce));
  }

  async #pay(read: () => Promise<UnpaidLine[]>): Promise<void> {
    for (let left = await read(); left.length > 0; left = await read()) {
      await Promise.all(left.map(({ usage: { begin, end } }) => this.#options.charge(begin, end)));
      await this.#options.flush();
      await this.#options.work.paid(left);
    }
  }

  /** A spool is read by its own process alone: until the database has it, another one would have to charge for it. */
  async #tellPaid(): Promise<void> {
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

  /** Takes lines for the places that are idle. */
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
        const { batch, models, places } = next;
        const lines = await work.claimLines(batch.id, models, Math.min(room, places), this.#claim);
        if (lines.length === 0) this.#empty.add(batch.id);
        // Where its lease ran out meanwhile, as after an outage, a line that is under way here is claimed anew, not asked again.
        for (const line of lines) if (!this.#running.has(nameOf(line))) void this.#answer(batch, line);
      }
    } catch (error) {
      log.error("batch_claim_failed", { detail: detailOf(error) });
      this.#open = [];
    }
  }

  /** Whose turn it is: the account with the least under way, and of its batches the one with the least. */
  #next(): { batch: Batch; models: string[]; places: number } | undefined {
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
      const idle = batch.models.map((model) => ({ model, places: this.#idlePlaces(batch, model) }));
      const models = idle.filter(({ places }) => places > 0);
      const places = models.reduce((most, one) => Math.max(most, one.places), 0);
      // One by one where several accounts want them, so that each gets as many.
      if (places > 0) return { batch, models: models.map(({ model }) => model), places: isShared ? 1 : places };
    }
    return undefined;
  }

  /** Places for lines that ask for this model; where there is no such model, one line at a time is told so. */
  #idlePlaces({ endpoint, accountId }: Batch, name: string): number {
    const { capacity } = this.#options.inference;
    const operation = batchEndpoints.get(endpoint);
    const model = this.#catalog.find(name);
    if (!operation || !model || model.deployments.length === 0) return 1 - this.#starting(name);
    const whose = { priority: defaultPriority, accountId, partyId: accountId };
    const request = { ...whose, operation, stream: false, width: 1, model: name, onWanted: () => {} };
    const open = model.deployments.filter(({ engine }) => engine.accepts !== false);
    return capacity.idlePlaces(open, request) - this.#starting(name);
  }

  /** Lines that are on their way to a place. */
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
      // Its lease ends it: another process takes the line.
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
        // What holds for one of its lines mostly holds for the others: they need not ask to be told the same.
        const untilMs = this.#options.clock.monotonicMs() + again.inSeconds * 1_000;
        if (!again.failed) this.#resting.set(batch.id, untilMs);
        await this.#written(() => work.releaseLine(line, this.#claim, again));
        return;
      }
      isError = true;
      text = refusedLine(batch, line.line, line.customId, error);
    }
    const usage = running.run?.usage;
    // The answer and what is charged for it are one write: whoever dies before it has done nothing, and after it all.
    if (!(await this.#written(() => work.answered(line, { text, isError, usage }, this.#claim)))) return;
    this.#ended[isError ? "failed" : "answered"]++;
    if (!usage) return;
    await this.#options.charge(usage.begin, usage.end);
    this.#paid.push(line);
  }

  /** Writes, again and again while the database is away, so that a model which has answered is not asked once more. */
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

  /** Resolves with the JSON of the answer. */
  async #ask(batch: Batch, line: ClaimedLine, running: Running): Promise<string> {
    const { authenticator, openRequests, inference, requestLimits } = this.#options;
    const principal = await authenticator.behind(batch.keyId);
    requireScope(principal, "chat:write");
    const place = openRequests.enter(principal);
    const bytes = line.end - line.start;
    const refusal = place.memoryAccount.take("requests", bytes);
    try {
      if (refusal) throw refusal;
      const limits = requestLimits();
      const frame = readFrame(await this.#bytesOf(batch, line), batch.endpoint, limits);
      const request = requestOf(frame, batch.endpoint, limits);
      const requestId = requestIdOf(batch, line.line);
      const run = new LineRun({ requestId, principal, request, memoryAccount: place.memoryAccount });
      running.run = run;
      if (this.#isClosed) throw stoppingError();
      return await run.ask({ ...inference, catalog: this.#catalog });
    } finally {
      if (!refusal) place.memoryAccount.release("requests", bytes);
      place.release();
    }
  }

  async #bytesOf({ inputFileId }: Batch, { start, end }: BatchLine): Promise<Buffer> {
    const pieces = await Array.fromAsync(this.#options.objects.read(inputFileId, { start, end }));
    return Buffer.concat(pieces);
  }

  /** When the line is to be asked again; undefined where the error is its answer. */
  #again(error: GatewayError, { attempts }: ClaimedLine, { batch, run }: Running) {
    if (run?.gaveWay || this.#isClosed) return { inSeconds: 0, failed: false };
    const inSeconds = Math.min(maxWaitSeconds, Math.ceil(error.retryAfterSeconds ?? 5 ** attempts));
    // A line that needs more than a limit ever allows would hold up its batch until that expires.
    const neverFits = error.shouldRetry === false && error.retryAfterSeconds === undefined;
    if (passing.has(error.code) && !neverFits) return { inSeconds, failed: false };
    const resetsAt = error.quota?.resets_at ?? null;
    // A quota that opens in time is waited for; one of a month that is spent is an answer.
    if (resetsAt !== null && resetsAt < batch.expiresAt) return { inSeconds: maxWaitSeconds, failed: false };
    if (ofServers.has(error.code) && attempts + 1 < maxAttempts) return { inSeconds, failed: true };
    return undefined;
  }
}

function nameOf({ batchId, line }: Pick<BatchLine, "batchId" | "line">): string {
  return `${batchId} ${line}`;
}

function detailOf(error: unknown): string {
  const { detail, message } = (error ?? {}) as { detail?: unknown; message?: unknown };
  return String(detail ?? message ?? error);
}
