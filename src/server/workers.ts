// The worker processes of this server, as its parts have them: what they are told, and what they tell.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import type { Log } from "../base/log.ts";
import type { Config, ReloadableConfig } from "../config/config.ts";
import { type KeyRing, keyRing } from "../domain/key-ring.ts";
import type { LimitSet } from "../domain/limits/limits.ts";
import type { Principal } from "../domain/principal.ts";
import { selfCommand } from "../installation/places.ts";
import { countersOf, summed } from "../metrics/summed.ts";
import type { ErrorWatch } from "../notifications/watch/error-watch.ts";
import type { OpenParty, OpenRequests } from "../policy/open-requests.ts";
import type { SettledLease } from "../workers/primary/rpc-server.ts";
import type { SummedLedgerOptions } from "../workers/primary/summed-ledger.ts";
import { WorkerProcesses } from "../workers/primary/worker-processes.ts";
import { directModels } from "./direct-models.ts";
import type { Governance } from "./governance.ts";
import type { ModelRouting } from "./model-routing.ts";
import type { WorkerSetup } from "./worker/worker.ts";

export interface WorkersOptions {
  config: Config;
  /** The port that they share. */
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
  /** Those of this process, which are counted with theirs. */
  openRequests: Pick<OpenRequests, "enter">;
  errorWatch: Pick<ErrorWatch, "count">;
  /** Told of upstreams that took requests, some moments later. */
  tookRequest(upstream: string): void;
  log: Log;
  passLines(lines: Uint8Array): void;
}

/** A change that no answer waits for, such as one of another replica, is told within this time. */
const pollMs = 250;

export class Workers {
  readonly #options: WorkersOptions;
  readonly #processes: WorkerProcesses;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #parties = new WeakMap<LimitSet, OpenParty>();
  /** What each told last, by its process id, and what those counted that are gone. */
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
      outcomes(counts, took) {
        for (const count of counts) errorWatch.count(...count);
        for (const upstream of took) options.tookRequest(upstream);
      },
      setup: (number) => this.#setup(number),
      models: () => directModels(routing),
    });
    this.#drained = routing.router.drained;
    routing.catalog.onChange = () => {
      this.#mayDiffer = true;
    };
    this.#timer = setInterval(() => this.tellModels(), pollMs);
    this.#timer.unref();
  }

  /** Resolves once all of them take requests. Rejects with a StartError where one cannot. */
  start(): Promise<void> {
    return this.#processes.start();
  }

  /** For tests that kill them. */
  get pids(): number[] {
    return this.#processes.pids;
  }

  /** Credentials or limits were changed. */
  changed(): void {
    this.#processes.drop();
  }

  /** None of them serves models as they were before from here on. */
  tellModels(): void {
    const { drained } = this.#options.routing.router;
    if (!this.#mayDiffer && drained === this.#drained) return;
    this.#mayDiffer = false;
    this.#drained = drained;
    this.#processes.modelsChanged();
  }

  configure(config: ReloadableConfig): void {
    this.#processes.configure(config);
  }

  /** Texts of their metrics, and of what those counted that are gone: a sum that falls would be read as a new beginning. */
  async metrics(): Promise<string[]> {
    const told = await this.#processes.figures();
    for (const [pid, text] of this.#figures) {
      if (told.has(pid)) continue;
      this.#past = summed(this.#past, [countersOf(text)]);
      this.#figures.delete(pid);
    }
    for (const [pid, text] of told) if (text !== undefined) this.#figures.set(pid, text);
    return [...this.#figures.values(), ...(this.#past === "" ? [] : [this.#past])];
  }

  /** Whether all that they settled is in the database: resolves once it is, or it cannot be helped. */
  flush(): Promise<boolean> {
    return this.#processes.flush();
  }

  hold(...asked: Parameters<SummedLedgerOptions["hold"]>): Promise<() => void> {
    return this.#processes.hold(...asked);
  }

  leave(): void {
    this.#processes.leave();
  }

  /** They refuse requests from now on. */
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

  /** Who has these limits, with what is remembered of them: the account's quota comes first, the key's own behind it. */
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

const socketsName = "headrace-workers-";

/** A directory for the sockets of this process and its workers, and for nobody else; the data directory says where. */
export function socketDirectory(dataDir: string): { path: string; close(): void } {
  const path = mkdtempSync(join(tmpdir(), socketsName));
  writeFileSync(ownerOf(path), resolve(dataDir));
  writeFileSync(noteOf(dataDir), path, { mode: 0o600 });
  return { path, close: () => removeLeftSockets(dataDir) };
}

/** Removes the directory of a process that was killed. To be called by whoever has the data directory. */
export function removeLeftSockets(dataDir: string): void {
  const note = noteOf(dataDir);
  if (!existsSync(note)) return;
  const path = readFileSync(note, "utf8");
  // A copy of the data directory of a server that runs says where the sockets of that one are.
  const owner = existsSync(ownerOf(path)) ? readFileSync(ownerOf(path), "utf8") : undefined;
  if (owner === resolve(dataDir) && basename(path).startsWith(socketsName)) rmSync(path, { recursive: true });
  rmSync(note, { force: true });
}

function ownerOf(path: string): string {
  return join(path, "data-directory");
}

function noteOf(dataDir: string): string {
  return join(dataDir, "worker-sockets");
}

/** The socket at which the primary process answers what workers hand over. */
export function innerSocket(directory: string): string {
  return join(directory, "inner.sock");
}

/**
 * A port that nobody listens on: what workers share, the kernel would let others share as well. Throws the system's error
 * where somebody does. `port` 0: a free one.
 */
export function freePort(hostname: string, port: number): number {
  const listener = Bun.listen({ hostname, port, exclusive: true, socket: { data() {} } });
  const { port: free } = listener;
  listener.stop(true);
  return free;
}

function hexOf(keys: KeyRing): string[] {
  return keyRing(keys).map((key) => Buffer.from(key).toString("hex"));
}
