// Lets operators list, pull and delete models on this server while the gateway runs.

import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { shown } from "../../base/text/shown.ts";
import type { AuditEvent, AuditLog } from "../../domain/audit.ts";
import type { Engine } from "../../domain/models/engine.ts";
import { type Fit, fitOf, type HeldMemory, type ModelMemory } from "../../domain/models/memory-need.ts";
import {
  type FileElsewhere,
  type ModelUse,
  modelUse,
  type Pull,
  type PulledModel,
  type PulledModelStore,
  type PullOffer,
  type RemovedModel,
} from "../../domain/models/pulled-model.ts";
import type { Principal } from "../../domain/principal.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { aboutInstallation, auditEvent, type Origin } from "../../policy/records/audit.ts";
import type { Catalog } from "./catalog.ts";

export interface PulledModelsOptions {
  store: PulledModelStore;
  audit: Pick<AuditLog, "append">;
  /**
   * True if an action that cannot be recorded in the audit log is refused. The action is then recorded before it is
   * performed.
   */
  isAuditRequired: boolean;
  catalog: Pick<Catalog, "refreshSource">;
  engine: PulledModelEngine;
  /** Processes that use the files of pulled models, besides the built-in engine. */
  elsewhere: readonly FileElsewhere[];
  log: Log;
}

/** The engine that serves pulled models. */
export interface PulledModelEngine extends Engine {
  /** Returns whether the model is loaded, and how many requests use it. */
  use(id: string): ModelUse;
  /** Returns the size of the memory that models are loaded into. */
  memory(): ModelMemory;
  /** Returns the loaded models and the memory of each. */
  held(): readonly HeldMemory[];
}

export interface ListedPulledModel extends PulledModel {
  use: ModelUse;
  /** True if the memory suffices for the model. Null if its need is unknown, or if the model is loaded. */
  fit: Fit | null;
}

export interface FittedOffer extends PullOffer {
  /** True if the memory suffices for the known minimum. The model may need more. */
  fit: Fit;
}

export class PulledModels {
  readonly #options: PulledModelsOptions;

  constructor(options: PulledModelsOptions) {
    this.#options = options;
  }

  async list(): Promise<ListedPulledModel[]> {
    const { store, engine } = this.#options;
    const memory = engine.memory();
    return (await store.list()).map((model) => {
      const use = this.#useOf(model.id);
      const fit = model.memory && use.state === "unloaded" ? fitOf(model.memory, memory) : null;
      return { ...model, use, fit };
    });
  }

  held(): readonly HeldMemory[] {
    return this.#options.engine.held();
  }

  pulls(): readonly Pull[] {
    return this.#options.store.pulls();
  }

  /** Resolves to the model that `source` names, and whether the memory suffices for it. Downloads nothing. */
  async offer(source: string, name: string | undefined): Promise<FittedOffer> {
    return this.#fitted(await this.#options.store.offer(source, name));
  }

  /** Resolves when the pull has begun. The model can be used when the pull has ended. */
  async pull(principal: Principal, source: string, name: string | undefined, origin: Origin): Promise<FittedOffer> {
    requireOperator(principal);
    const { store, isAuditRequired } = this.#options;
    const record = ({ id, bytes }: PullOffer) =>
      this.#record(
        id,
        auditEvent("pulled_model.requested", principal, origin, aboutInstallation(id, { bytes, source })),
      );
    if (isAuditRequired) await record(await store.offer(source, name));
    const offer = await store.pull(source, name, () => void this.#refresh());
    if (!isAuditRequired) await record(offer);
    return this.#fitted(offer);
  }

  #fitted(offer: PullOffer): FittedOffer {
    const bytes = offer.minMemoryBytes;
    return { ...offer, fit: fitOf({ bytes, minBytes: bytes }, this.memory()) };
  }

  #useOf(id: string): ModelUse {
    const { engine, elsewhere } = this.#options;
    const runs = elsewhere.find(({ model }) => model === id);
    return runs ? useBy(runs) : engine.use(id);
  }

  /** Makes the engines list their models again, after files were added or removed. */
  async #refresh(): Promise<void> {
    const { catalog, engine, elsewhere } = this.#options;
    await catalog.refreshSource(engine, ...elsewhere.map(({ process }) => process.engine));
  }

  memory(): ModelMemory {
    return this.#options.engine.memory();
  }

  /**
   * Resolves when the model is deleted. Rejects with `service_unavailable` if the model is being pulled, or if a file
   * could not be deleted. Also rejects while the model is in use, unless `force` is set. With `force`, running requests
   * end as usual.
   */
  async remove(principal: Principal, id: string, force: boolean, origin: Origin): Promise<PulledModel> {
    requireOperator(principal);
    const { store, elsewhere, isAuditRequired } = this.#options;
    const drafting = elsewhere.filter(({ draft }) => draft === id);
    const inUse = drafting.reduce((sum, other) => sum + useBy(other).inUse, this.#useOf(id).inUse);
    if (inUse > 0 && !force) throw stillUsed(id, inUse);
    const record = (detail: AuditEvent["detail"]) =>
      this.#record(id, auditEvent("pulled_model.deleted", principal, origin, aboutInstallation(id, detail)));
    if (isAuditRequired && (await store.list()).some((model) => model.id === id)) await record({});
    const removed = await store.remove(id);
    if (!removed) throw unknownModel(id);
    if (!isAuditRequired) await record(deletionDetail(removed));
    await this.#refresh();
    // Processes that use the deleted files are stopped, because the disk space is only freed then.
    for (const { model, draft, process } of elsewhere) if (model === id || draft === id) process.unload();
    if (removed.left.length > 0) throw notAllDeleted(removed);
    return removed;
  }

  /**
   * Records the action in the audit log. No transaction covers both, so the action is recorded afterwards, and a failed
   * action is not recorded. If the audit is required, the action is recorded before, and it is not performed if
   * recording fails.
   */
  async #record(id: string, event: AuditEvent): Promise<void> {
    const { audit, log, isAuditRequired } = this.#options;
    if (isAuditRequired) return audit.append([event]);
    const by = "id" in event.actor ? event.actor.id : event.actor.type;
    await audit.append([event]).catch((error) => {
      log.error("pulled_model_not_audited", { model: id, by, detail: String(error) });
    });
  }
}

function useBy({ process }: FileElsewhere): ModelUse {
  const { state, inFlight, waiting } = process.figures();
  return modelUse(state, inFlight + waiting);
}

function deletionDetail({ bytes, source, left }: RemovedModel) {
  return { bytes, source, ...(left.length > 0 ? { files_left: left.length } : {}) };
}

function stillUsed(id: string, inUse: number): GatewayError {
  const requests = inUse === 1 ? "1 request" : `${inUse} requests`;
  return new GatewayError(
    "service_unavailable",
    `${requests} work with the model ${shown(id)} or wait for it. Delete it once they have ended, or with \`force=true\`: they end as usual then.`,
    { retryAfterSeconds: 30 },
  );
}

function notAllDeleted({ id, left }: RemovedModel): GatewayError {
  const files = left.length === 1 ? "1 of its files" : `${left.length} of its files`;
  return new GatewayError(
    "service_unavailable",
    `The model ${id} is offered no more, but ${files} could not be deleted. The server's log says why; once that is mended, delete the model again.`,
    { detail: left.join(", ") },
  );
}

function unknownModel(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `There is no pulled model ${shown(id)} on this server. GET /v1/admin/pulled-models lists those that are.`,
  );
}
