// A worker process: serves models that run at plain HTTP servers, and hands other requests over to the primary process.
import { dirname, join } from "node:path";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Config, ReloadableConfig } from "../../config/config.ts";
import type { Tier } from "../../domain/account.ts";
import type { KeyRing } from "../../domain/key-ring.ts";
import type { Principal } from "../../domain/principal.ts";
import type { SpanTotals, TotalsOwner, UsageRecord } from "../../domain/usage/usage.ts";
import { type InferenceRouteDeps, runFor } from "../../http/api/inference-answer.ts";
import { inferenceRoutes } from "../../http/api/inference-routes.ts";
import { createRoute as createMessageRoute } from "../../http/api/message-routes.ts";
import { createRoute as createResponseRoute } from "../../http/api/responses/response-routes.ts";
import { trustedProxies } from "../../http/exchange/client-address.ts";
import { errorAnswer } from "../../http/exchange/errors.ts";
import { HandedOver } from "../../http/exchange/handed-over.ts";
import { Locality } from "../../http/exchange/locality.ts";
import { startHttpServer } from "../../http/exchange/server.ts";
import { wantsStoring } from "../../inference/answer/recorder.ts";
import { Stopping } from "../../inference/stopping.ts";
import { endWithParent } from "../../installation/end-with-parent.ts";
import { SpoolLedger } from "../../ledger/ledger.ts";
import { StreamLog } from "../../logging/logging.ts";
import { logSettings } from "../../logging/settings.ts";
import { isServersFault } from "../../notifications/watch/error-watch.ts";
import { AddressThrottle } from "../../policy/address-throttle.ts";
import { Admitter } from "../../policy/admit.ts";
import { Authenticator, type PresentedCredentials } from "../../policy/credentials/authenticate.ts";
import type { Chain } from "../../policy/credentials/cached-chain.ts";
import { KeyActivity } from "../../policy/credentials/key-activity.ts";
import { suspendedCheck } from "../../policy/credentials/suspensions.ts";
import { UnknownCredentials } from "../../policy/credentials/unknown-credentials.ts";
import { LearnedLengths } from "../../policy/learned-lengths.ts";
import { limitsOf } from "../../policy/limits-of.ts";
import { Tiers } from "../../policy/manage/tiers.ts";
import { OpenRequests } from "../../policy/open-requests.ts";
import { UsageDoubts } from "../../policy/records/usage-doubts.ts";
import { RequestTags } from "../../policy/request-tags.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { openBeside } from "../../storage/sql/database.ts";
import { openPostgres } from "../../storage/sql/open-postgres.ts";
import type { Tracing } from "../../tracing/open-tracing.ts";
import { HandOver } from "../../workers/hand-over.ts";
import type { UnreachableAnswer } from "../../workers/handed-request.ts";
import { SeenChanges } from "../../workers/link/changes.ts";
import { FrameLink } from "../../workers/link/frame-link.ts";
import { type ToWorker, unpacked } from "../../workers/link/messages.ts";
import { OutcomeCounts } from "../../workers/worker/outcome-counts.ts";
import { PrimaryLink } from "../../workers/worker/primary-link.ts";
import { RemoteKeys } from "../../workers/worker/remote-keys.ts";
import { RemoteLimits } from "../../workers/worker/remote-limits.ts";
import type { DirectModels } from "../direct-models.ts";
import { replySeals } from "../reply-seals.ts";
import { WorkerMetrics } from "./worker-metrics.ts";
import { WorkerRouting } from "./worker-routing.ts";

/** The setup of a worker. It contains secrets, so it goes over a private socket. */
export interface WorkerSetup {
  config: Config;
  /** The port on which all workers listen. */
  port: number;
  baseUrl: string;
  /** The socket at which the primary process answers handed-over requests. */
  innerSocket: string;
  /** Keys as hex digits, the one in use first. */
  peppers: readonly string[];
  replySealKeys: readonly string[];
  pseudonymKey: string;
  /** The number of workers, and this one's number, from 1. */
  workers: number;
  number: number;
  heartbeatMs: number;
  /** Id of the installation. Undefined if the database has none. */
  installation: string | undefined;
  /** Version of Headrace. `instanceId` identifies this process in traces. */
  version: string;
  instanceId: string;
}

const graceMs = 500;
/** Maximum milliseconds for which a settled record waits for the message that releases it to the database. */
const maxHoldMs = 5_000;
/** A worker itself reads bodies of up to one key's memory limit divided by this number. */
const longBodies = 8;
/** Maximum concurrent requests and WebSockets that one worker hands over to the primary process. */
const maxHandedOver = 16_384;

/**
 * Runs a worker until its process ends. Arguments: the path of the primary process's socket, and the worker's number.
 */
export async function serveRequests([path = "", number = ""]: readonly string[]): Promise<void> {
  endWithParent();
  process.umask(0o077);
  // A terminal signals every process. Only the primary process decides which process ends, and when.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
  let worker: Worker | undefined;
  const messages: { [Name in keyof ToWorker]: (...values: ToWorker[Name]) => void } = {
    setup(setup, changes) {
      worker = new Worker(unpacked<WorkerSetup>(setup), primary, new SeenChanges(dirname(path), changes));
      process.on("unhandledRejection", (reason) =>
        worker?.log.error("unhandled_rejection", { detail: textOf(reason) }),
      );
      process.on("uncaughtException", (error) => worker?.log.error("uncaught_exception", { detail: textOf(error) }));
    },
    models: (models) => worker?.serve(unpacked<DirectModels>(models)),
    configure: (config) => worker?.configure(unpacked<ReloadableConfig>(config)),
    drop: () => void worker?.drop(),
    suspended: (ids) => worker?.suspended(ids),
    changed: () => worker?.changed(),
    confirm: (question) => primary.send("answer", question, null),
    figures: (question) => primary.send("answer", question, worker?.figures()),
    flush: (question) => void worker?.flush().then((isWritten) => primary.send("answer", question, isWritten)),
    hold: (question, owner) => worker?.hold(question, owner),
    release: (question) => worker?.release(question),
    leave: () => worker?.leave(),
    turnAway: () => worker?.turnAway(),
    stop: (drainMs) => void worker?.stop(drainMs),
    answer: (question, value) => primary.answered(question, value),
    refuse: (question, error) => primary.refused(question, error),
  };
  const { promise: closed, resolve: close } = Promise.withResolvers<string | undefined>();
  const socket = await Bun.connect<{ link?: FrameLink }>({
    unix: path,
    data: {},
    socket: {
      data: ({ data }, bytes) => data.link?.data(bytes),
      drain: ({ data }) => data.link?.drain(),
      close: ({ data }) => data.link?.ended(),
      error: (one) => one.terminate(),
    },
  });
  const link = new FrameLink(socket, {
    received: ([name, ...values]) => (messages[name as keyof ToWorker] as (...given: unknown[]) => void)(...values),
    figures: (kind, words, at) => primary.figures(kind, words, at),
    closed: close,
  });
  socket.data.link = link;
  const primary = new PrimaryLink(link);
  primary.send("hello", Number(number));
  const fault = await closed;
  // Without the primary process, no request can be admitted or recorded.
  if (fault !== undefined) worker?.log.error("primary_lost", { detail: fault });
  worker?.log.close();
  process.exit(fault === undefined ? 0 : 1);
}

class Worker {
  readonly log: StreamLog;
  readonly #setup: WorkerSetup;
  readonly #primary: PrimaryLink;
  readonly #changes: SeenChanges;
  readonly #clock: Clock = systemClock;
  readonly #tiers = new Tiers();
  readonly #addressThrottle = new AddressThrottle({ clock: this.#clock });
  readonly #authenticator: Authenticator;
  readonly #activity: KeyActivity;
  readonly #stopping = new Stopping();
  readonly #routing: WorkerRouting;
  readonly #metrics: WorkerMetrics;
  #config: ReloadableConfig;
  #isRefusing = false;
  readonly #observer: OutcomeCounts;
  /** Functions that release withheld records to the database, by request number. */
  readonly #holds = new Map<number, () => void>();
  #ledger: SpoolLedger | undefined;
  #tracing: Tracing | undefined;
  #server: ReturnType<typeof startHttpServer> | undefined;
  #isStarting = false;

  constructor(setup: WorkerSetup, primary: PrimaryLink, changes: SeenChanges) {
    const { config } = setup;
    this.#setup = setup;
    this.#primary = primary;
    this.#changes = changes;
    this.#config = config;
    this.log = new StreamLog(config.logFormat);
    this.#routing = new WorkerRouting({
      ...{ clock: this.#clock, log: this.log, workers: setup.workers },
      limits: () => this.#config.limits,
    });
    this.log.configure(logSettings(config, config, this.#routing));
    this.#metrics = new WorkerMetrics({ clock: this.#clock, routing: this.#routing, http: () => this.#server });
    this.#observer = new OutcomeCounts(this.#metrics.observer, primary, isServersFault, () =>
      this.#routing.takeAttempts(),
    );
    this.#tiers.configure(config.tiers);
    const keys = new RemoteKeys(primary);
    this.#activity = new KeyActivity({ keys, log: this.log });
    this.#authenticator = new Authenticator({
      ...{ keys, clock: this.#clock, log: this.log, mode: config.mode, activity: this.#activity },
      pepper: ringOf(setup.peppers),
      // Hands a refused request over: the primary process refuses it again and counts the refusal.
      refusals: { record: handOver },
      tokens: { verify: handOver, isSigner: handOver },
      unknown: new UnknownCredentials(this.#addressThrottle),
      limitsOf: (chain) => this.#limitsOf(chain),
      priorityOf: (account) => this.#tiers.find(account.tier).priority,
      reread: () => this.#reread(),
    });
    bufferedBytes.maxBytes = Math.ceil(config.limits.heldBytes / setup.workers);
  }

  /** Sets the served models. The first call makes the worker listen. */
  serve(models: DirectModels): void {
    this.#routing.configure(models);
    if (this.#isStarting) return;
    this.#isStarting = true;
    this.#start().catch((error: unknown) => {
      // The primary process tries again with another worker. Until then, the previous worker's reservations stay open.
      this.log.error("worker_not_started", { detail: textOf(error) });
      this.log.close();
      process.exit(1);
    });
  }

  configure(config: ReloadableConfig): void {
    this.#config = config;
    this.#tiers.configure(config.tiers);
    this.#authenticator.limitsChanged();
    this.log.configure(logSettings(this.#setup.config, config, this.#routing));
    bufferedBytes.maxBytes = Math.ceil(config.limits.heldBytes / this.#setup.workers);
  }

  /** Drops cached credentials. Replaces the tiers first, so that no new entry is built from old tiers. */
  async drop(): Promise<void> {
    await this.#reread();
    this.#authenticator.invalidate();
    this.#changes.saw();
  }

  suspended(ids: readonly string[]): void {
    this.#stopping.suspend(suspendedCheck(ids));
  }

  /** Records that the worker has applied the messages before this one. */
  changed(): void {
    this.#changes.saw();
  }

  figures(): string {
    return this.#metrics.text(this.#ledger);
  }

  /** Writes all settled records to the database. Returns false if that failed. */
  async flush(): Promise<boolean> {
    if (!this.#ledger) return false;
    return await this.#ledger.flush().then(
      () => true,
      () => false,
    );
  }

  hold(question: number, owner: TotalsOwner): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, maxHoldMs);
    this.#holds.set(question, () => {
      clearTimeout(timer);
      resolve();
    });
    const none: SpanTotals = { requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined };
    if (!this.#ledger) this.#primary.send("answer", question, none);
    else
      void this.#ledger
        .hold(owner, (waiting) => this.#primary.send("answer", question, waiting), promise)
        .catch(() => this.#primary.send("answer", question, null));
  }

  release(question: number): void {
    this.#holds.get(question)?.();
    this.#holds.delete(question);
  }

  leave(): void {
    this.#server?.leave();
  }

  turnAway(): void {
    this.#isRefusing = true;
  }

  async stop(drainMs: number): Promise<void> {
    const drained = this.#server?.stop();
    await Promise.race([drained, Bun.sleep(drainMs)]);
    this.#stopping.begin();
    // Requests that this worker serves itself are asked to end now. Handed-over requests are asked when the primary
    // process says so.
    await Promise.race([drained, Bun.sleep(graceMs)]);
    this.#server?.close();
    this.#authenticator.close();
    await Promise.race([this.#activity.close(), Bun.sleep(graceMs)]);
    await this.#ledger?.close();
    await this.#tracing?.close();
    this.log.close();
    process.exit();
  }

  async #start(): Promise<void> {
    await this.#reread();
    const ledger = await this.#openLedger();
    this.#ledger = ledger;
    this.#tracing = await openTraces(this.#setup, this.log);
    this.#authenticator.start();
    const { config, port, baseUrl, innerSocket } = this.#setup;
    const handOver = new HandOver({ socketPath: innerSocket, maxConnections: maxHandedOver, unreachable });
    this.#server = startHttpServer({
      ...{ hostname: config.host, port, shared: true, routes: this.#routes(ledger) },
      authenticator: { authenticate: (presented) => this.#authenticate(presented) },
      // Only the primary process knows browser sessions.
      sessions: { applies: () => false, find: handOverLater },
      baseUrl: () => baseUrl,
      openRequests: new OpenRequests(() => this.#config.limits.openRequestsPerKey, bufferedBytes),
      trustedProxies: trustedProxies(config.trustedProxies),
      locality: new Locality(config.allowedHosts),
      addressThrottle: this.#addressThrottle,
      publicUrl: config.publicUrl,
      corsOrigins: () => this.#config.cors.origins,
      isRefusing: () => this.#isRefusing,
      ...{ log: this.log, clock: this.#clock, observer: this.#observer, elsewhere: handOver },
      tracer: this.#tracing?.tracer,
      requestLog: () => this.#config.logs,
    });
    this.#primary.send("listening");
  }

  async #openLedger(): Promise<SpoolLedger> {
    const { config, number, installation } = this.#setup;
    const { dataDir, databaseUrl } = config;
    const db = await (databaseUrl === undefined ? openBeside(dataDir) : openPostgres(databaseUrl));
    return await SpoolLedger.open({
      ...{ db, directory: join(dataDir, "spool"), log: this.log, clock: this.#clock },
      beside: {
        ...{ writer: number, installation },
        // Reported before the spool is deleted: if this process dies first, the next one still finds the records there.
        onRecords: (records) => this.#primary.send("recovered", records.map(usedOf)),
      },
    });
  }

  #routes(ledger: SpoolLedger) {
    const { catalog, router, capacity } = this.#routing;
    const primary = this.#primary;
    const deps: InferenceRouteDeps = {
      ...{ catalog, router, capacity, clock: this.#clock, stopping: this.#stopping },
      ledger,
      admitter: new Admitter({ limits: new RemoteLimits(primary), lengths: new LearnedLengths(), clock: this.#clock }),
      requestTags: new RequestTags({ settings: () => this.#config.tags, clock: this.#clock }),
      refusalCounts: { count: (principal, model, error) => this.#refused(principal, model, error) },
      refusedRequests: { admits: () => true, note: (refused) => primary.send("refused", refused) },
      usageDoubts: new UsageDoubts({ clock: this.#clock, log: this.log }),
      sealFor: replySeals(ringOf(this.#setup.replySealKeys), Buffer.from(this.#setup.pseudonymKey, "hex")),
      heartbeatMs: this.#setup.heartbeatMs,
      observer: this.#observer,
      requestLimits: () => this.#config.limits,
      // A worker has only a part of the server's memory. The primary process has room for a body of the maximum size.
      maxReadBytes: () => Math.floor(bufferedBytes.maxBytesOfKey / longBodies),
      isElsewhere: (request, principal) => this.#isElsewhere(request, principal),
      ...keptElsewhere,
    };
    return [...inferenceRoutes(deps), createMessageRoute(deps), createResponseRoute(deps, runFor)];
  }

  /**
   * Hands requests over while the worker's cached credentials may be outdated. The primary process has current ones.
   */
  #authenticate(presented: PresentedCredentials): Principal | Promise<Principal> {
    return this.#changes.isBehind ? handOver() : this.#authenticator.authenticate(presented);
  }

  /** Reports whether the primary process must answer: only that process reads and writes stored objects. */
  #isElsewhere(request: DecodedRequest, { account, responseCache }: Principal): boolean {
    if (responseCache === "on") return true;
    if (request.namesServers || request.namesKept || request.background || !this.#routing.serves(request.model))
      return true;
    return request.dialect.kept !== undefined && wantsStoring(account, request, this.#config.chatRetentionDays);
  }

  #refused(
    { account, environment, appId, keys }: Pick<Principal, "account" | "environment" | "appId" | "keys">,
    model: string,
    error: unknown,
  ): void {
    if (!(error instanceof GatewayError) || error.refusal === undefined) return;
    const keyId = keys[0].id;
    this.#primary.send("refusal", { accountId: account.id, environment, keyId, appId, model, reason: error.refusal });
  }

  #limitsOf({ keys, account }: Chain) {
    return limitsOf({ keys, account, environment: keys[0].environment, tier: this.#tiers.find(account.tier) });
  }

  async #reread(): Promise<void> {
    this.#tiers.load(await this.#primary.ask<Tier[]>("tiers"));
  }
}

/** The answer in the short time between the end of the primary process and the end of this worker. */
function unreachable(): UnreachableAnswer {
  const error = new GatewayError("service_unavailable", "The server is being started anew; send the request again.", {
    retryAfterSeconds: 1,
  });
  const { status, headers, body } = errorAnswer(error);
  return { status, headers, body: String(body) };
}

/** Tracing code is loaded only if traces are configured. */
async function openTraces({ config, version, instanceId }: WorkerSetup, log: Log): Promise<Tracing | undefined> {
  if (!config.tracing) return undefined;
  const { openTracing } = await import("../../tracing/open-tracing.ts");
  return openTracing({ ...config.tracing, log, version, instanceId });
}

function handOver(): never {
  throw new HandedOver();
}

function handOverLater(): Promise<never> {
  return Promise.reject(new HandedOver());
}

/** Never called, because requests that need stored objects are handed over first. */
const keptElsewhere = {
  responses: { chain: handOverLater, items: handOverLater },
  conversations: { all: handOverLater },
  chatWriter: { retentionDays: 0, add: handOver, notStored: handOver, flush: () => Promise.resolve() },
  responseKeeper: { retentionDays: 0, requireRoom: handOverLater, keep: handOverLater, notStored: handOver },
} as const;

function ringOf([first = "", ...others]: readonly string[]): KeyRing {
  return [Buffer.from(first, "hex"), ...others.map((one) => Buffer.from(one, "hex"))];
}

function usedOf({ requestId, promptTokens, completionTokens, nanoUsd }: UsageRecord) {
  return [requestId, promptTokens + completionTokens, nanoUsd ?? 0] as const;
}

function textOf(reason: unknown): string {
  return reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
}
