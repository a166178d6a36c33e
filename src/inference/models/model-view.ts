// Builds the operators' view of all models, from the configuration file, the database and model servers.

import { defaultEnvironments } from "../../domain/api-key.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { ModelSettings, ModelSource, StoredModel } from "../../domain/models/model-entry.ts";
import type { OverflowSpend } from "../../domain/models/policies/overflow.ts";
import { priceToWire } from "../../domain/models/price-text.ts";
import type { ManagedModelWire } from "../../wire/models.ts";
import { dateOf } from "../../wire/parts.ts";
import type { Catalog } from "./catalog.ts";
import type { ModelStatus } from "./model-status.ts";
import { modelSettingsToWire } from "./model-values.ts";

/** A model that the configuration file declares. */
export interface FileModel extends ModelSettings {
  readonly id: string;
}

export interface ModelSources {
  /**
   * Models that operators have declared in the database. A change takes effect once the catalog is configured again.
   */
  storedModels: readonly StoredModel[];
  fileModels(): readonly FileModel[];
  guardrails(): readonly { readonly name: string }[];
}

export interface ModelViewDeps {
  catalog: Pick<Catalog, "lists">;
  modelStatus: Pick<ModelStatus, "stateOf" | "attemptsOf">;
}

/** A model id, with the declaration or offer of each source that knows it. At least one of the three is set. */
export interface KnownModel {
  id: string;
  file: FileModel | undefined;
  stored: StoredModel | undefined;
  /** The model as it is currently offered. */
  offered: Model | undefined;
}

/** Returns the spending cap of the model's overflow deployments, and its period. Returns null if there is no cap. */
export function overflowSpendOf({ file, stored, offered }: KnownModel): OverflowSpend | null {
  const { policies } = offered ?? file ?? stored ?? {};
  return policies?.overflow?.spend ?? null;
}

type ShownDeployment = ManagedModelWire["deployments"][number];

export function sourceOf({ file, stored }: KnownModel): ModelSource {
  return file ? "file" : stored ? "database" : "upstream";
}

/** Returns the operators' view of a model, without the parts that must be read from the database. */
export function modelToWire(known: KnownModel, deps: ModelViewDeps): Omit<ManagedModelWire, "overflow_spend"> {
  const { id, file, stored, offered } = known;
  const settings: ModelSettings | undefined = file ?? stored;
  const deployments = deploymentsOf(settings, offered, deps);
  const price = offered?.price ?? settings?.price;
  return {
    object: "managed_model",
    id,
    source: sourceOf(known),
    overrides_database: file !== undefined && stored !== undefined,
    status: statusOf(deployments),
    owned_by: offered?.ownedBy ?? settings?.ownedBy ?? null,
    capabilities: offered?.capabilities ?? settings?.capabilities ?? null,
    context_length: offered?.context ?? settings?.context ?? null,
    shutdown_date: offered?.shutdownAt === undefined ? null : dateOf(offered.shutdownAt),
    environments: [...(offered?.environments ?? settings?.environments ?? defaultEnvironments)],
    price: price ? priceToWire(price) : null,
    deployments,
    fallbacks: [...(settings?.fallbacks ?? [])],
    aliases: [...(settings?.aliases ?? [])],
    settings: settings ? modelSettingsToWire(settings) : null,
    created_at: stored?.createdAt ?? null,
  };
}

/**
 * Returns the declared deployments, even if their upstream was deleted. If none are declared, returns all deployments
 * where the model was found.
 */
function deploymentsOf(
  settings: ModelSettings | undefined,
  offered: Model | undefined,
  deps: ModelViewDeps,
): ShownDeployment[] {
  const found = offered?.deployments ?? [];
  if (!settings || settings.deployments.length === 0) return found.map((deployment) => shown(deployment, deps));
  return settings.deployments.map(({ upstream, model, weight }) => {
    const here = found.find((one) => one.engine.name === upstream && one.model === model);
    return here
      ? shown(here, deps)
      : { upstream, model, weight, state: "missing", process: null, listed: null, attempts: null };
  });
}

function shown(deployment: Deployment, { catalog, modelStatus }: ModelViewDeps): ShownDeployment {
  const { engine, model, weight } = deployment;
  const state = modelStatus.stateOf(deployment);
  const process = engine.processState?.(model) ?? null;
  const listed = catalog.lists(engine, model);
  return { upstream: engine.name, model, weight, state, process, listed, attempts: modelStatus.attemptsOf(deployment) };
}

function statusOf(deployments: readonly ShownDeployment[]): ManagedModelWire["status"] {
  if (deployments.every(({ state }) => state === "missing")) return "nowhere";
  const working = deployments.filter(({ state }) => state === "ok").length;
  if (working === 0) return "down";
  return working === deployments.length ? "ok" : "partly";
}
