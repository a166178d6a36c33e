// Runs the background responses of this process, and ends responses whose process has crashed.
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Clock } from "../../base/clock.ts";
import { fieldError, type GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type {
  AbandonedResponse,
  BackgroundStore,
  ResponseStore,
  StoredResponse,
} from "../../domain/models/stored-response.ts";
import { keyOf, makerOf, type Principal } from "../../domain/principal.ts";
import type { InferenceDeps } from "../../inference/call.ts";
import { runResponse } from "../../inference/hosted/run-response.ts";
import type { MessageRequest } from "../../inference/message-request.ts";
import { roughSizeOf } from "../../policy/records/stored-room.ts";
import { decodeRequest, type RequestLimits } from "../../requests/decode/decode-request.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { dialects } from "../../requests/dialects/dialects.ts";
import { ownItems } from "../../requests/dialects/response/kept-items.ts";
import { responseBase, responseState } from "../../requests/dialects/response/response-object.ts";
import { BackgroundRun } from "./background-run.ts";
import { abandonedEnd } from "./run-events.ts";
import { workingMs } from "./run-writer.ts";
import { SharedPolls } from "./shared-polls.ts";
import { StoreTurns } from "./store-turns.ts";

/**
 * Seconds without progress after which a response counts as abandoned, if two consecutive polls find it so. The time
 * allows for heartbeats and for clocks of replicas that differ by 30 s. After a database outage all responses look
 * abandoned until their processes report again, hence the second poll.
 */
const abandonedSeconds = 45 + workingMs / 1_000;
const pollMs = 15_000;
/** Maximum abandoned responses of one poll. A crashed process may leave thousands. */
const abandonedAtOnce = 1_000;
/** Milliseconds that a closing server waits until the ends of its responses are stored. */
const closeMs = 3_000;
const secondsPerDay = 86_400;

export interface BackgroundRunsOptions {
  responses: Pick<ResponseStore, "insert">;
  background: BackgroundStore;
  clock: Clock;
  log: Log;
}

export interface BackgroundRequest {
  /** The message whose request id determines the response's id. */
  message: MessageRequest;
  /** The value of the header with tags, as the client sent it. */
  tagHeader: string | null;
  priority: Priority | undefined;
  principal: Principal;
  request: DecodedRequest;
  limits: RequestLimits;
  onLimits(status: LimitStatus): void;
}

export class BackgroundRuns {
  /** Polls of the store for clients that read responses of other replicas. */
  readonly polls: SharedPolls;
  readonly #options: BackgroundRunsOptions;
  readonly #runs = new Map<string, BackgroundRun>();
  readonly #turns: StoreTurns;
  /** Responses that looked abandoned at the last poll, with the time of their last progress, by id. */
  #abandoned: ReadonlyMap<string, number> = new Map();
  readonly #timer: ReturnType<typeof setInterval>;
  #checking: Promise<void> | undefined;

  constructor(options: BackgroundRunsOptions) {
    this.#options = options;
    this.#turns = new StoreTurns(options.clock);
    this.polls = new SharedPolls(options.background, options.clock);
    this.#timer = setInterval(() => this.#check(), pollMs);
    // The first poll also finds responses of an earlier process at this address.
    this.#check();
  }

  /** Returns the run of a response; undefined if another process runs it, or none. */
  find(id: string): BackgroundRun | undefined {
    return this.#runs.get(id);
  }

  /**
   * Starts a response. Resolves when the response is stored and the request admitted. Rejects with the GatewayError for
   * the client.
   */
  async start(
    { message, principal, request, limits, onLimits, ...asked }: BackgroundRequest,
    deps: InferenceDeps,
  ): Promise<BackgroundRun> {
    try {
      requireKept(request, deps);
      const memoryAccount = message.by(principal);
      const streamed = asStream(request, limits);
      const refusal = message.hold(streamed.bytes.length);
      if (refusal) throw refusal;
      message.trace?.asked(streamed);
      const stored = queued(message.requestId, principal, streamed, deps);
      const { responseKeeper } = deps;
      await responseKeeper.requireRoom(principal.account.id, roughSizeOf(stored.input));
      const one = new BackgroundRun({
        ...{ ...asked, message, principal, memoryAccount, request: streamed, stored },
        ...{ turns: this.#turns, ...this.#options },
        onNotStored: () => responseKeeper.notStored(principal.account.id, "store_failed"),
      });
      this.#runs.set(one.id, one);
      void one.ended.then(() => this.#runs.delete(one.id));
      // Disables the usual storing, because the run stores the response when it begins and ends.
      const { retentionDays } = responseKeeper;
      const keepsNothing = {
        ...{ retentionDays, requireRoom: () => Promise.resolve() },
        ...{ keep: () => Promise.resolve(true), notStored: () => {} },
      };
      await one.begin({
        ask: (call) => runResponse(call, { ...deps, responseKeeper: keepsNothing }),
        onLimits,
      });
      return one;
    } catch (error) {
      message.leave();
      throw error;
    }
  }

  /** Resolves when this process runs no responses any more. */
  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.all([...this.#runs.values()].map(({ ended }) => ended));
  }

  /** Resolves when the store is no longer used. Running responses must have been told to stop. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const untilMs = this.#options.clock.monotonicMs() + closeMs;
    for (const one of this.#runs.values()) one.giveUpAt(untilMs);
    await this.#checking;
    await this.idle();
  }

  /** Polls once, and ends responses that looked abandoned in two consecutive polls. Never rejects. */
  async endAbandoned(): Promise<void> {
    const { background, clock, log } = this.#options;
    const before = this.#abandoned;
    this.#abandoned = new Map();
    try {
      const now = clock.nowSeconds();
      const found = await background.abandoned(now - abandonedSeconds, now, abandonedAtOnce);
      // Skip responses of this process, which report their progress as soon as they can.
      const others = found.filter(({ id }) => !this.#runs.has(id));
      for (const one of others.filter(({ id, seenAt }) => before.get(id) === seenAt)) await this.#fail(one);
      this.#abandoned = new Map(others.map(({ id, seenAt }) => [id, seenAt]));
    } catch (error) {
      const { detail } = error as { detail?: unknown };
      log.error("background_look_failed", { detail: String(detail ?? "unknown") });
    }
  }

  #check(): void {
    this.#checking ??= this.endAbandoned().finally(() => {
      this.#checking = undefined;
    });
  }

  async #fail(abandoned: AbandonedResponse): Promise<void> {
    const { background, clock, log } = this.#options;
    const isEnded = await background.endAbandoned(abandoned, abandonedEnd, clock.nowSeconds());
    if (isEnded) log.warn("background_response_abandoned", { response: abandoned.id });
  }
}

function requireKept(request: DecodedRequest, { responseKeeper }: InferenceDeps): void {
  if (request.store === false) {
    throw fieldError("background", "cannot be true with `store: false`: what comes of it is read where it is kept.");
  }
  if (responseKeeper.retentionDays === 0) throw notKeptHere();
}

function notKeptHere(): GatewayError {
  return fieldError(
    "background",
    "must be false: responses are not kept at this server, as stored_chats.retention_days is 0. Ask for a stream instead.",
  );
}

/**
 * Returns the request with `stream: true` and without `background` and its options: the run reads the model's stream
 * and stores the response itself. OpenAI refuses the options of a streamed request.
 */
function asStream(request: DecodedRequest, limits: RequestLimits): DecodedRequest {
  const { background: _background, background_options: _options, ...body } = request.body;
  const bytes = Buffer.from(JSON.stringify({ ...body, stream: true }));
  const asked = decodeRequest(request.operation, ByteSpan.of(bytes), limits);
  asked.goesOn = request.goesOn;
  return asked;
}

function queued(
  requestId: string,
  principal: Principal,
  { model, body, goesOn }: DecodedRequest,
  { catalog, clock, responseKeeper, sealFor }: InferenceDeps,
): StoredResponse {
  const { account, environment, appId } = principal;
  const id = dialects.response.idOf(requestId);
  const createdAt = clock.nowSeconds();
  const members = dialects.response.kept?.members(true, goesOn);
  const seal = sealFor(account.id);
  const found = catalog.find(model);
  // Leave out the instructions if guardrails have not checked them yet.
  const request = found?.policies?.guardrails ? { ...body, instructions: null } : body;
  const head = { id, model, created: createdAt, promptTokens: 0, request, members, seal };
  return {
    id,
    accountId: account.id,
    environment,
    keyId: keyOf(principal).id,
    appId,
    personId: keyOf(principal).personId,
    madeBy: makerOf(principal),
    model: found?.id ?? model,
    createdAt,
    expiresAt: createdAt + responseKeeper.retentionDays * secondsPerDay,
    status: "queued",
    previousId: goesOn?.keptAfter ?? null,
    conversationId: goesOn?.conversationId ?? null,
    background: true,
    response: {
      ...responseBase(head),
      ...responseState({ status: "in_progress", output: [] }),
      background: true,
      status: "queued",
    },
    input: goesOn?.input ?? ownItems(body["input"]),
  };
}
