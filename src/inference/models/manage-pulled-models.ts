// Models that were pulled to this server, as operators see and delete them while it runs.

import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { shown } from "../../base/text/shown.ts";
import type { AuditLog } from "../../domain/audit.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { PulledModel, PulledModelStore, RemovedModel } from "../../domain/models/pulled-model.ts";
import type { Principal } from "../../domain/principal.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { aboutInstallation, auditEvent, type Origin } from "../../policy/records/audit.ts";
import type { Catalog } from "./catalog.ts";

export interface PulledModelsOptions {
  store: PulledModelStore;
  audit: Pick<AuditLog, "append">;
  catalog: Pick<Catalog, "refreshSource">;
  /** That serves them. */
  engine: Engine;
  log: Log;
}

export class PulledModels {
  readonly #options: PulledModelsOptions;

  constructor(options: PulledModelsOptions) {
    this.#options = options;
  }

  list(): Promise<PulledModel[]> {
    return this.#options.store.list();
  }

  /**
   * Resolves once it is offered no more. What works with it ends as usual. Rejects with `service_unavailable` while it is
   * being pulled, and where not all of its files could be deleted.
   */
  async remove(principal: Principal, id: string, origin: Origin): Promise<PulledModel> {
    requireOperator(principal);
    const { store, catalog, engine } = this.#options;
    const removed = await store.remove(id);
    if (!removed) throw unknownModel(id);
    await this.#record(principal, removed, origin);
    await catalog.refreshSource(engine);
    if (removed.left.length > 0) throw notAllDeleted(removed);
    return removed;
  }

  /** Behind the deletion, as no transaction has both: what was refused or came to nothing must not stand there as done. */
  async #record(principal: Principal, { id, bytes, source, left }: RemovedModel, origin: Origin): Promise<void> {
    const { audit, log } = this.#options;
    const detail = { bytes, source, ...(left.length > 0 ? { files_left: left.length } : {}) };
    const event = auditEvent("pulled_model.deleted", principal, origin, aboutInstallation(id, detail));
    const by = "id" in event.actor ? event.actor.id : event.actor.type;
    await audit.append([event]).catch((error) => {
      log.error("pulled_model_not_audited", { model: id, by, detail: String(error) });
    });
  }
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
