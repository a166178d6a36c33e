// The worker processes of this server, with the messages to and from them.
import type { Log } from "../base/log.ts";
import type { Config, ReloadableConfig } from "../config/config.ts";
import { type KeyRing, keyRing } from "../domain/key-ring.ts";
import type { LimitSet } from "../domain/limits/limits.ts";
import type { Principal } from "../domain/principal.ts";
import { selfCommand } from "../installation/paths.ts";
import { countersOf, summed } from "../metrics/summed.ts";
import type { ErrorWatch } from "../notifications/watch/error-watch.ts";
import type { OpenParty, OpenRequests } from "../policy/open-requests.ts";
import type { SettledLease } from "../workers/primary/rpc-server.ts";
import type { SummedLedgerOptions } from "../workers/primary/summed-ledger.ts";
import { WorkerProcesses } from "../workers/primary/worker-processes.ts";
import { directModels } from "./direct-models.ts";
import type { Governance } from "./governance.ts";
import type { ModelRouting } from "./model-routing.ts";
import { innerSocket } from "./primary/sockets.ts";
import type { WorkerSetup } from "./worker/worker.ts";

export interface WorkersOptions {
  config: Config;
  /** The shared port. */
  port: number;
  baseUrl: string;
  heartbeatMs: number;
  version: string;
  /** Id of this process among the replicas. */
  instanceId: string;
  directory: string;
  governance: Governance;
  routing: Pick<ModelRouting, "catalog" | "sources" | "router">;
  quotaWatch: { used(party: Pick<Principal, "limits"> & { account: { id: string } }): void };
  /** Open requests of this process, which are counted together with the workers'. */
  openRequests: Pick<OpenRequests, "enter">;
  errorWatch: Pick<ErrorWatch, "count">;
  /** Called shortly after an upstream accepted a worker's request. */
  tookRequest(upstream: string): void;
  log: Log;
  passLines(lines: Uint8Array): void;
}

/** Maximum milliseconds until workers learn of a change for which no client waits, such as another replica's change. */
const pollMs = 250;

export class Workers {
  readonly #options: WorkersOptions;
  readonly #processes: WorkerProcesses;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #parties = new WeakMap<LimitSet, OpenParty>();
  /** The last metrics of each worker, by process id. `#past` sums the counters of ended workers. */
  readonly #figures = new Map<number, string>();
  #past = "";
  #mayDiffer = false;
  #drained: ReadonlySet<string>;

  constructor(options: WorkersOptions) {
    this.#options = options;
    const { config, directory, governance, routing, errorWatch, log } = options;
    const { keys, limits, refusedRequests, refusalCounts, secretRotation } = governance;
    this.#processes = new WorkerProcesses({
      ...{ count: config.workers, directory, log, passLines: options.passLines },
      command: selfCommand("serve-requests"),
      rpcServer: {
        ...{ limits, keys },
        renewals: secretRotation.renewals,
        limitsSeen: (set) => governance.limitsSeen(set),
        enter: (set) => options.openRequests.enter(this.#partyOf(set)),
        used: (rpcServer, lease) => this.#used(rpcServer, lease),
      },
      tiers: () => governance.tiers.ofDatabase,
      refused: (request) => {
        if (refusedRequests.admits(request.keyId, request.accountId)) refusedRequests.note(request);
      },
      refusal: (counted) => refusalCounts.add(counted),
      outcomes(counts, took, attempts) {
        for (const count of counts) errorWatch.count(...count);
        for (const upstream of took) options.tookRequest(upstream);
        if (attempts.length === 0) return;
        const engines = new Map(routing.sources.known().map(({ name, engine }) => [name, engine]));
        for (const [upstream, model, delta] of attempts) {
          const engine = engines.get(upstream);
          if (engine) routing.router.addAttempts(engine, model, delta);
        }
      },
      setup: (number) => this.#setup(number),
      models: () => directModels(routing),
    });
    this.#drained = routing.router.drained;
    routing.catalog.onChange = () => {
      this.#mayDiffer = true;
    };
    this.#timer = setInterval(() => this.sendModels(), pollMs);
    this.#timer.unref();
  }

  /** Resolves when all workers accept requests. Rejects with a StartError if one cannot. */
  start(): Promise<void> {
    return this.#processes.start();
  }

  /** For tests that kill workers. */
  get pids(): number[] {
    return this.#processes.pids;
  }

  /** Notifies workers of changed credentials or limits. */
  changed(): void {
    this.#processes.drop();
  }

  /** Makes workers stop the running requests of suspended callers. */
  suspended(ids: readonly string[]): void {
    this.#processes.suspended(ids);
  }

  /** Notifies workers of changed models. Afterwards no worker serves the old ones. */
  sendModels(): void {
    const { drained } = this.#options.routing.router;
    if (!this.#mayDiffer && drained === this.#drained) return;
    this.#mayDiffer = false;
    this.#drained = drained;
    this.#processes.modelsChanged();
  }

  configure(config: ReloadableConfig): void {
    this.#processes.configure(config);
  }

  /**
   * Returns the metrics of all workers as texts. Ended workers are included, because a decreasing counter would look
   * like a restart.
   */
  async metrics(): Promise<string[]> {
    const current = await this.#processes.figures();
    for (const [pid, text] of this.#figures) {
      if (current.has(pid)) continue;
      this.#past = summed(this.#past, [countersOf(text)]);
      this.#figures.delete(pid);
    }
    for (const [pid, text] of current) if (text !== undefined) this.#figures.set(pid, text);
    return [...this.#figures.values(), ...(this.#past === "" ? [] : [this.#past])];
  }

  /** Writes the records of all workers to the database. Returns false if that failed. */
  flush(): Promise<boolean> {
    return this.#processes.flush();
  }

  hold(...asked: Parameters<SummedLedgerOptions["hold"]>): Promise<() => void> {
    return this.#processes.hold(...asked);
  }

  leave(): void {
    this.#processes.leave();
  }

  /** Makes workers refuse requests from now on. */
  turnAway(): void {
    this.#processes.turnAway();
  }

  stop(drainMs: number): Promise<void> {
    return this.#processes.stop(drainMs);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#options.routing.catalog.onChange = undefined;
    await this.#processes.close();
  }

  /**
   * Returns the account and key of these limits, cached. The first quota is the account's, the second the key's own.
   */
  #partyOf(limits: LimitSet): OpenParty {
    let party = this.#parties.get(limits);
    if (!party) {
      const [ofAccount, ofKey] = limits.quotas;
      const [account, limitId] = [ofAccount?.ownerId ?? "", ofKey?.ownerId ?? ""];
      party = { account: { id: account }, keys: [{ limitId }] };
      this.#parties.set(limits, party);
    }
    return party;
  }

  #used(rpcServer: object, lease: SettledLease): void {
    const { limits } = lease;
    this.#options.governance.summedLedger.settled(rpcServer, lease);
    this.#options.quotaWatch.used({ limits, account: this.#partyOf(limits).account });
  }

  #setup(number: number): WorkerSetup {
    const { config, port, baseUrl, heartbeatMs, version, instanceId, directory, governance } = this.#options;
    return {
      ...{ version, instanceId: `${instanceId}-${number}` },
      ...{ config, port, baseUrl, heartbeatMs, workers: config.workers, number },
      innerSocket: innerSocket(directory),
      installation: governance.installation.id,
      peppers: hexOf(governance.peppers),
      replySealKeys: hexOf(governance.keyFor("reply-seal-v1")),
      pseudonymKey: Buffer.from(governance.pseudonymKey).toString("hex"),
    };
  }
}

function hexOf(keys: KeyRing): string[] {
  return keyRing(keys).map((key) => Buffer.from(key).toString("hex"));
}
