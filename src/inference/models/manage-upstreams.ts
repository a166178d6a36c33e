// Lets operators add, change, drain and delete upstreams while the gateway runs.

import type { Clock } from "../../base/clock.ts";
import { forbidden, GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { shown } from "../../base/text/shown.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import type { Keys } from "../../domain/key-ring.ts";
import type {
  StoredUpstream,
  UpstreamChange,
  UpstreamSettings,
  UpstreamSource,
  UpstreamStore,
} from "../../domain/models/upstream.ts";
import type { Principal } from "../../domain/principal.ts";
import { seal, unseal } from "../../policy/credentials/sealing.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { aboutInstallation, auditEvent, changedMembers, type Origin } from "../../policy/records/audit.ts";
import { Turns } from "../../policy/turns.ts";
import type { CreateUpstreamRequest, UpdateUpstreamRequest, UpstreamWire } from "../../wire/upstreams.ts";
import type { Capacity } from "../routing/capacity.ts";
import type { Router } from "../routing/route.ts";
import type { Catalog } from "./catalog.ts";
import type { UpstreamHealths } from "./upstream-health.ts";
import { changedSettings, newSettings, settingsToWire, upstreamApiKey } from "./upstream-values.ts";
import { type KnownUpstream, type OpenedUpstream, type UpstreamSources, upstreamToWire } from "./upstream-view.ts";

export interface UpstreamsOptions {
  store: UpstreamStore;
  sources: UpstreamSources;
  catalog: Pick<Catalog, "status" | "refreshSource">;
  router: Pick<Router, "drained" | "engineState" | "loadOf">;
  capacity: Pick<Capacity, "figures" | "regroup">;
  healths: Pick<UpstreamHealths, "of">;
  clock: Pick<Clock, "nowSeconds">;
  /** The keys that encrypt API keys, 32 bytes each. */
  sealingKey: Keys;
  /** Makes the catalog use the current upstreams. */
  configure(): void;
  /**
   * Called after a committed change, to notify other replicas. Without this function, they find the change when they
   * poll.
   */
  announce?(): void;
  log: Log;
}

const maxUpstreams = 100;
const maxWaitingChanges = 32;

export class Upstreams {
  readonly #options: UpstreamsOptions;
  /** Runs one change at a time, because each change depends on the result of the one before. */
  readonly #changes = new Turns(1, maxWaitingChanges);
  #stored: readonly StoredUpstream[] = [];
  /** Names of upstreams whose API key cannot be decrypted, because it was sealed with another secret. */
  #unreadable = new Set<string>();

  constructor(options: UpstreamsOptions) {
    this.#options = options;
  }

  /** Reads the upstreams from the database. Call this before the catalog is configured for the first time. */
  async load(): Promise<void> {
    this.#use(await this.#options.store.listUpstreams());
    this.#options.router.drained = new Set(await this.#options.store.listDrained());
  }

  /**
   * Applies changes that other processes made. Upstreams that did not change keep their engine. Resolves when new
   * engines were asked for their models. Rejects with `service_unavailable`.
   */
  async reload(): Promise<void> {
    const { sources, catalog, capacity, configure } = this.#options;
    const before = new Set(sources.known().map(({ engine }) => engine));
    await this.#inTurn(async () => {
      await this.load();
      configure();
    });
    capacity.regroup();
    const added = sources.known().filter(({ engine }) => !before.has(engine));
    await Promise.all(added.map(({ engine }) => catalog.refreshSource(engine)));
    if (added.length > 0) capacity.regroup();
  }

  /**
   * Lists all upstreams: the built-in engine first, then those of the configuration file, those of the database, and
   * discovered ones.
   */
  list(): UpstreamWire[] {
    return this.#options.sources.known().map((upstream) => this.#toWire(upstream));
  }

  /** Returns the upstreams of the database with their API keys. Reads them from the database again. */
  async stored(): Promise<(OpenedUpstream & Pick<StoredUpstream, "createdAt">)[]> {
    await this.reload();
    return this.#stored.map(({ sealedApiKey: _, ...one }) => ({ ...one, apiKey: this.#openedKey(one.name) }));
  }

  /** Returns the operators' view of an upstream. Throws `not_found` if it does not exist. */
  get(name: string): UpstreamWire {
    return this.#toWire(this.known(name));
  }

  /** Returns an upstream. Throws `not_found` if it does not exist. */
  known(name: string): KnownUpstream {
    const known = this.#options.sources.known().find((upstream) => upstream.name === name);
    if (!known) throw unknownUpstream(name);
    return known;
  }

  /** Adds an upstream. Resolves when the upstream was asked for its models, which takes a few seconds at most. */
  async add(principal: Principal, request: CreateUpstreamRequest, origin: Origin): Promise<UpstreamWire> {
    requireOperator(principal);
    const settings = newSettings(request);
    const { name } = settings;
    const apiKey = typeof request.api_key === "string" ? upstreamApiKey(request.api_key) : null;
    await this.#decide(async () => {
      this.#requireNew(name);
      const upstream = { ...settings, sealedApiKey: this.#seal(apiKey, settings), createdAt: origin.nowSeconds };
      const detail = { ...settingsToWire(settings), has_api_key: apiKey !== null };
      const event = auditEvent("upstream.created", principal, origin, aboutInstallation(name, detail));
      if (!(await this.#options.store.insertUpstream(upstream, event))) throw nameTaken(name);
      this.#use([...this.#stored, upstream]);
      this.#drain(name, false);
      this.#options.configure();
    });
    return await this.#refreshed(name);
  }

  /**
   * Changes an upstream. Resolves when the upstream was asked for its models. If only `draining` changes, it is not
   * asked.
   */
  async change(
    principal: Principal,
    name: string,
    request: UpdateUpstreamRequest,
    origin: Origin,
  ): Promise<UpstreamWire> {
    requireOperator(principal);
    const changed = await this.#decide(async () => {
      const plan = this.#planChange(name, request);
      if (Object.keys(plan.detail).length === 0) return undefined;
      const { upstream, draining } = plan.change;
      const event = auditEvent("upstream.updated", principal, origin, aboutInstallation(name, plan.detail));
      if (!(await this.#options.store.changeUpstream(name, plan.change, event))) throw unknownUpstream(name);
      if (upstream) this.#use(this.#stored.map((stored) => (stored.name === name ? upstream : stored)));
      if (draining !== undefined) this.#drain(name, draining);
      this.#options.configure();
      // Waiting requests choose again. If the URL has changed, they do this later, when the models of the new server
      // are known.
      if (draining !== undefined) this.#options.capacity.regroup();
      return plan.change;
    });
    return changed?.upstream ? await this.#refreshed(name) : this.get(name);
  }

  /** Deletes an upstream. Requests that run there end as if it still existed. */
  async remove(principal: Principal, name: string, origin: Origin): Promise<void> {
    requireOperator(principal);
    await this.#decide(async () => {
      const stored = this.#stored.find((upstream) => upstream.name === name);
      if (!stored) throw readOnly(name, this.known(name).source);
      // If the configuration file has an upstream with this name, that one stays drained.
      const draining = this.known(name).source !== "database" && this.#isDraining(name);
      const detail = { ...settingsToWire(stored), has_api_key: stored.sealedApiKey !== null };
      const event = auditEvent("upstream.deleted", principal, origin, aboutInstallation(name, detail));
      if (!(await this.#options.store.deleteUpstream(name, { draining }, event))) throw unknownUpstream(name);
      this.#use(this.#stored.filter((upstream) => upstream !== stored));
      this.#drain(name, draining);
      this.#options.configure();
      // Requests that wait for the deleted upstream choose another deployment.
      this.#options.capacity.regroup();
    });
  }

  /**
   * Reports whether a replica is drained. Drained replicas are stored under their ids, together with drained upstreams.
   */
  isReplicaDrained(id: string): boolean {
    return this.#isDraining(id);
  }

  /** Starts or ends the draining of a replica. Other replicas are notified in the same way as for upstreams. */
  async drainReplica(principal: Principal, id: string, draining: boolean, origin: Origin): Promise<void> {
    requireOperator(principal);
    await this.#decide(async () => {
      if (this.#isDraining(id) === draining) return;
      const detail = changedMembers({ draining: !draining }, { draining });
      const event = auditEvent("replica.updated", principal, origin, aboutInstallation(id, detail));
      await this.#options.store.changeUpstream(id, { draining }, event);
      this.#drain(id, draining);
    });
  }

  #planChange(name: string, request: UpdateUpstreamRequest): { change: UpstreamChange; detail: AuditEvent["detail"] } {
    const known = this.known(name);
    const { draining, ...settings } = request;
    const wasDraining = this.#isDraining(name);
    const drained = changedMembers({ draining: wasDraining }, { draining: draining ?? wasDraining });
    const upstream = Object.values(settings).some((value) => value !== undefined)
      ? this.#changed(known, settings)
      : undefined;
    return {
      change: {
        ...(upstream ? { upstream: upstream.stored } : {}),
        ...("draining" in drained && draining !== undefined ? { draining } : {}),
      },
      detail: { ...upstream?.detail, ...drained },
    };
  }

  /** Returns the changed upstream for the database. Returns undefined if nothing changes. */
  #changed(
    { name, source }: KnownUpstream,
    request: Omit<UpdateUpstreamRequest, "draining">,
  ): { stored: StoredUpstream; detail: AuditEvent["detail"] } | undefined {
    const stored = this.#stored.find((upstream) => upstream.name === name);
    if (source !== "database" || !stored) throw readOnly(name, source);
    const settings = changedSettings(stored, request);
    const detail: Record<string, unknown> = changedMembers(settingsToWire(stored), settingsToWire(settings));
    const before = this.#openedKey(name) ?? null;
    let { sealedApiKey } = stored;
    if (request.api_key !== undefined) {
      const apiKey = request.api_key === null ? null : upstreamApiKey(request.api_key);
      sealedApiKey = this.#seal(apiKey, settings);
      // The audit log records only that the API key changed, because a key is never shown.
      const became = apiKey === null ? "removed" : "replaced";
      if (apiKey !== before || this.#unreadable.has(name)) detail["api_key"] = stored.sealedApiKey ? became : "added";
    } else if (sealedApiKey !== null && addressOf(settings) !== addressOf(stored)) {
      throw keyStaysHere();
    }
    if (Object.keys(detail).length === 0) return undefined;
    return { stored: { ...settings, sealedApiKey, createdAt: stored.createdAt }, detail };
  }

  #requireNew(name: string): void {
    const known = this.#options.sources.known().find((upstream) => upstream.name === name);
    if (known?.source === "file") {
      throw invalidRequest(
        `name: headrace.yaml has an upstream ${name}; choose another name, or change that one in the file.`,
      );
    }
    if (known?.source === "node") {
      throw invalidRequest(`name: there is a node ${name}; choose another name.`);
    }
    if (this.#stored.some((upstream) => upstream.name === name)) throw nameTaken(name);
    if (this.#stored.length < maxUpstreams) return;
    throw invalidRequest(
      `There are ${maxUpstreams} upstreams already, which is the most that can be added here; delete one first.`,
    );
  }

  /**
   * Encrypts an API key together with the address of its server. If somebody changes the URL in the database, the key
   * cannot be decrypted, so it is not sent to another server.
   */
  #seal(apiKey: string | null, upstream: Pick<UpstreamSettings, "name" | "url">): string | null {
    return apiKey === null ? null : seal(apiKey, this.#options.sealingKey, upstreamKeyContext(upstream));
  }

  #use(stored: readonly StoredUpstream[]): void {
    this.#stored = [...stored].sort((a, b) => (a.name < b.name ? -1 : 1));
    this.#options.sources.stored = this.#stored.map((upstream): OpenedUpstream => {
      const { sealedApiKey: _, createdAt: __, ...settings } = upstream;
      return { ...settings, apiKey: this.#apiKeyOf(upstream) };
    });
  }

  #openedKey(name: string): string | undefined {
    return this.#options.sources.stored.find((upstream) => upstream.name === name)?.apiKey;
  }

  #apiKeyOf(upstream: StoredUpstream): string | undefined {
    const wasUnreadable = this.#unreadable.delete(upstream.name);
    if (upstream.sealedApiKey === null) return undefined;
    try {
      return unseal(upstream.sealedApiKey, this.#options.sealingKey, upstreamKeyContext(upstream));
    } catch {
      this.#unreadable.add(upstream.name);
      if (!wasUnreadable) this.#options.log.error("upstream_key_unreadable", { upstream: upstream.name });
      return undefined;
    }
  }

  #isDraining(name: string): boolean {
    return this.#options.router.drained.has(name);
  }

  #drain(name: string, draining: boolean): void {
    const drained = new Set(this.#options.router.drained);
    if (draining) drained.add(name);
    else drained.delete(name);
    this.#options.router.drained = drained;
  }

  async #refreshed(name: string): Promise<UpstreamWire> {
    await this.#options.catalog.refreshSource(this.known(name).engine);
    // The models of the upstream may serve waiting requests, so these choose again.
    this.#options.capacity.regroup();
    return this.get(name);
  }

  /** Runs a change. Reads the stored upstreams before, because another process may have changed them. */
  #decide<Value>(change: () => Promise<Value>): Promise<Value> {
    return this.#inTurn(async () => {
      await this.load();
      const value = await change();
      this.#options.announce?.();
      return value;
    });
  }

  #inTurn<Value>(change: () => Promise<Value>): Promise<Value> {
    return this.#changes.runOrRefuse(change, "Too many upstreams are being changed at once.");
  }

  #toWire(upstream: KnownUpstream): UpstreamWire {
    const { name } = upstream;
    return upstreamToWire(upstream, this.#options, {
      stored: this.#stored.find((one) => one.name === name),
      isUnreadable: this.#unreadable.has(name),
      isDraining: this.#isDraining(name),
    });
  }
}

/** Returns the context in which an upstream's API key is encrypted: its name and server. */
export function upstreamKeyContext(upstream: Pick<UpstreamSettings, "name" | "url">): string {
  return `upstream ${upstream.name} ${addressOf(upstream)}`;
}

/** Returns the scheme, host and port of an upstream's URL. */
function addressOf({ url }: Pick<UpstreamSettings, "url">): string {
  return new URL(url).origin;
}

function unknownUpstream(name: string): GatewayError {
  return new GatewayError(
    "not_found",
    `There is no upstream ${shown(name)}. GET /v1/admin/upstreams lists the upstreams.`,
  );
}

function nameTaken(name: string): GatewayError {
  return invalidRequest(`name: there is an upstream ${name} already; PATCH /v1/admin/upstreams/${name} changes it.`);
}

function keyStaysHere(): GatewayError {
  return invalidRequest(
    "api_key: is required where url moves to another scheme, host or port, as the stored key is sent to no other server; null for none.",
  );
}

const readOnlyText = {
  "built-in": "is the built-in engine; here it can only be drained, with draining.",
  command: "is a command of headrace.yaml and read-only here but for draining: change it under `engine` in that file.",
  file: "is defined in headrace.yaml and read-only here but for draining: change it under `upstreams` in that file.",
  found:
    "was found on this machine; here it can only be drained. POST /v1/admin/upstreams with its name and url adds it.",
  node: "is a node; PATCH /v1/admin/nodes changes it.",
  // This text is shown if the upstream was deleted during the request.
  database: "is not there any more.",
} as const satisfies Record<UpstreamSource, string>;

function readOnly(name: string, source: UpstreamSource): GatewayError {
  return forbidden(`The upstream ${name} ${readOnlyText[source]}`);
}
