// Lets operators add, change and delete declared models while the gateway runs.

import { forbidden, GatewayError, invalidRequest } from "../../base/errors.ts";
import { usdOf } from "../../base/money.ts";
import { shown } from "../../base/text/shown.ts";
import type { ModelStore, StoredModel } from "../../domain/models/model-entry.ts";
import type { Principal } from "../../domain/principal.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { aboutInstallation, auditEvent, changedMembers, type Origin } from "../../policy/records/audit.ts";
import { Turns } from "../../policy/turns.ts";
import type { CreateModelRequest, ManagedModelWire, UpdateModelRequest } from "../../wire/models.ts";
import type { OverflowSpending } from "../overflow/overflow-spending.ts";
import type { Capacity } from "../routing/capacity.ts";
import type { Catalog } from "./catalog.ts";
import type { ModelStatus } from "./model-status.ts";
import {
  changedModelSettings,
  type ModelSurroundings,
  modelSettingsToWire,
  newModelId,
  openSettings,
} from "./model-values.ts";
import { type KnownModel, type ModelSources, modelToWire, overflowSpendOf } from "./model-view.ts";
import type { UpstreamSources } from "./upstream-view.ts";

export interface ManagedModelsOptions {
  store: ModelStore;
  sources: ModelSources & Pick<UpstreamSources, "known">;
  catalog: Pick<Catalog, "get" | "list" | "lists" | "whenComplete">;
  modelStatus: Pick<ModelStatus, "stateOf" | "attemptsOf">;
  capacity: Pick<Capacity, "regroup">;
  spending: Pick<OverflowSpending, "spent" | "opensAt">;
  /** Makes the catalog use the current declarations. */
  configure(): void;
  /**
   * Called after a committed change, to notify other replicas. Without this function, they find the change when they
   * poll.
   */
  announce?(): void;
}

const maxModels = 1_000;
const maxWaitingChanges = 32;

export class ManagedModels {
  readonly #options: ManagedModelsOptions;
  /** Runs one change at a time, because each change depends on the result of the one before. */
  readonly #changes = new Turns(1, maxWaitingChanges);

  constructor(options: ManagedModelsOptions) {
    this.#options = options;
  }

  /**
   * Reads the declared models from the database. Rejects with `service_unavailable`. Afterwards the caller must
   * configure the catalog.
   */
  load(): Promise<void> {
    return this.#inTurn(() => this.#load());
  }

  /** Lists all models by id: from the configuration file, the database, and model servers. */
  async list(): Promise<ManagedModelWire[]> {
    const { sources, catalog } = this.#options;
    await catalog.whenComplete();
    const declared = [...sources.fileModels(), ...sources.storedModels, ...catalog.list()];
    const ids = [...new Set(declared.map(({ id }) => id))].sort();
    const find = <One extends { id: string }>(all: readonly One[]) => new Map(all.map((one) => [one.id, one]));
    const file = find(sources.fileModels());
    const stored = find(sources.storedModels);
    return await Promise.all(
      ids.map((id) => this.#shown({ id, file: file.get(id), stored: stored.get(id), offered: catalog.get(id) })),
    );
  }

  async #shown(known: KnownModel): Promise<ManagedModelWire> {
    const { spending } = this.#options;
    const spend = overflowSpendOf(known);
    const shown = modelToWire(known, this.#options);
    if (!spend) return { ...shown, overflow_spend: null };
    const spent = usdOf(await spending.spent(known.id, spend));
    const { per, nanoUsd } = spend;
    return { ...shown, overflow_spend: { per, spent, limit: usdOf(nanoUsd), ends_at: spending.opensAt(spend) } };
  }

  /** Returns a model. Rejects with `not_found` if it does not exist. */
  async get(id: string): Promise<ManagedModelWire> {
    if (!this.#options.catalog.get(id)) await this.#options.catalog.whenComplete();
    return await this.#shown(this.#known(id));
  }

  /** Returns the models declared by the API, read again from the database. */
  async stored(): Promise<readonly StoredModel[]> {
    await this.load();
    return this.#options.sources.storedModels;
  }

  /**
   * Returns all settings of a declaration, in the form of the API. `upstreams` are names that will exist when it is
   * applied. Throws `invalid_request`, or `permission_denied` if the configuration file defines the model.
   */
  declared(id: string, request: UpdateModelRequest, upstreams: readonly string[]) {
    if (this.#options.sources.fileModels().some((model) => model.id === id)) throw readOnly(id);
    const surroundings = this.#surroundings();
    const known = { ...surroundings, upstreams: [...surroundings.upstreams, ...upstreams] };
    return modelSettingsToWire(changedModelSettings(newModelId({ id }), openSettings, request, known));
  }

  async add(principal: Principal, request: CreateModelRequest, origin: Origin): Promise<ManagedModelWire> {
    requireOperator(principal);
    const id = newModelId(request);
    await this.#decide(async () => {
      this.#requireNew(id);
      const settings = changedModelSettings(id, openSettings, request, this.#surroundings());
      await this.#insert(principal, { id, ...settings, createdAt: origin.nowSeconds }, origin);
    });
    return await this.get(id);
  }

  /** Changes a model's settings. If the model is not declared yet, a declaration is created. */
  async change(
    principal: Principal,
    id: string,
    request: UpdateModelRequest,
    origin: Origin,
  ): Promise<ManagedModelWire> {
    requireOperator(principal);
    // Throws for an unknown model. Shortly after the start, this waits until every engine was asked for its models.
    await this.get(id);
    await this.#decide(async () => {
      const { file, stored } = this.#known(id);
      if (file) throw readOnly(id);
      const settings = changedModelSettings(id, stored ?? openSettings, request, this.#surroundings());
      const detail = changedMembers(modelSettingsToWire(stored ?? openSettings), modelSettingsToWire(settings));
      if (Object.keys(detail).length === 0) return;
      if (!stored) {
        this.#requireRoom();
        await this.#insert(principal, { id, ...settings, createdAt: origin.nowSeconds }, origin);
        return;
      }
      const model = { ...stored, ...settings };
      const event = auditEvent("model.updated", principal, origin, aboutInstallation(id, detail));
      if (!(await this.#options.store.changeModel(model, event))) throw unknownModel(id);
      this.#use(this.#options.sources.storedModels.map((one) => (one.id === id ? model : one)));
    });
    return await this.get(id);
  }

  /** Deletes a declared model. Running requests end as usual and keep their price. */
  async remove(principal: Principal, id: string, origin: Origin): Promise<void> {
    requireOperator(principal);
    await this.get(id);
    await this.#decide(async () => {
      const { stored, file } = this.#known(id);
      if (!stored) throw file ? readOnly(id) : notDeclared(id);
      const event = auditEvent("model.deleted", principal, origin, aboutInstallation(id, modelSettingsToWire(stored)));
      if (!(await this.#options.store.deleteModel(id, event))) throw unknownModel(id);
      this.#use(this.#options.sources.storedModels.filter((one) => one !== stored));
    });
  }

  async #insert(principal: Principal, model: StoredModel, origin: Origin): Promise<void> {
    const event = auditEvent(
      "model.created",
      principal,
      origin,
      aboutInstallation(model.id, modelSettingsToWire(model)),
    );
    if (!(await this.#options.store.insertModel(model, event))) throw idTaken(model.id);
    this.#use([...this.#options.sources.storedModels, model]);
  }

  #use(stored: readonly StoredModel[]): void {
    const { sources, configure, capacity } = this.#options;
    sources.storedModels = stored;
    configure();
    // The change may add or remove deployments, so waiting requests choose again.
    capacity.regroup();
  }

  #known(id: string): KnownModel {
    const { sources, catalog } = this.#options;
    const known = {
      id,
      file: sources.fileModels().find((model) => model.id === id),
      stored: sources.storedModels.find((model) => model.id === id),
      offered: catalog.get(id),
    };
    if (known.file || known.stored || known.offered) return known;
    throw unknownModel(id);
  }

  #surroundings(): ModelSurroundings {
    const { sources, catalog } = this.#options;
    const ofFile = sources.fileModels();
    const named = new Set(ofFile.map(({ id }) => id));
    const declared = [...ofFile, ...sources.storedModels.filter(({ id }) => !named.has(id))];
    return {
      upstreams: sources.known().map(({ name }) => name),
      guardrails: sources.guardrails().map(({ name }) => name),
      capabilitiesOf: (id) => catalog.get(id)?.capabilities,
      aliasOwner: (alias) => declared.find(({ aliases }) => aliases.includes(alias))?.id,
    };
  }

  #requireNew(id: string): void {
    const { sources } = this.#options;
    if (sources.fileModels().some((model) => model.id === id)) {
      throw invalidRequest(
        `id: headrace.yaml has a model ${id}; choose another id, or change that one under \`models\` in the file.`,
      );
    }
    if (sources.storedModels.some((model) => model.id === id)) throw idTaken(id);
    this.#requireRoom();
  }

  #requireRoom(): void {
    if (this.#options.sources.storedModels.length < maxModels) return;
    throw invalidRequest(
      `There are ${maxModels} models declared already, which is the most that can be declared here; delete one first.`,
    );
  }

  async #load(): Promise<void> {
    this.#options.sources.storedModels = await this.#options.store.listModels();
  }

  /** Runs a change. Reads the stored models before, because another process may have changed them. */
  #decide(change: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      await this.#load();
      await change();
      this.#options.announce?.();
    });
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    return this.#changes.runOrRefuse(change, "Too many models are being changed at once.");
  }
}

function unknownModel(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `There is no model ${shown(id)}. GET /v1/admin/models lists the models; POST /v1/admin/models declares one.`,
  );
}

function idTaken(id: string): GatewayError {
  return invalidRequest(
    `id: the model ${id} is declared here already; PATCH /v1/admin/models/${encodeURIComponent(id)} changes it.`,
  );
}

function readOnly(id: string): GatewayError {
  return forbidden(
    `The model ${shown(id)} is defined in headrace.yaml and read-only here: change it under \`models\` in that file.`,
  );
}

function notDeclared(id: string): GatewayError {
  return forbidden(
    `The model ${shown(id)} is offered as its upstreams list it, and nothing was declared of it here. To stop offering it, set discover of the upstream to false, or delete the upstream.`,
  );
}
