// Models that operators declare in the file or over the API, and the checks of these declarations.

import { nearest } from "../../base/text/nearest.ts";
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import { type Capabilities, capabilityNames } from "./capabilities.ts";
import type { ModelPolicies } from "./policies/model-policies.ts";
import type { Price } from "./price.ts";

/** A deployment of a declared model. */
export interface EntryDeployment {
  /** Name of an upstream or node, or `builtInEngineName`. */
  readonly upstream: string;
  /** The model's id at the upstream. */
  readonly model: string;
  readonly weight: number;
}

/** The settings of a model. If a setting is null or an empty list, the model has what its upstream reports. */
export interface ModelSettings {
  readonly ownedBy: string | null;
  readonly capabilities: Readonly<Capabilities> | null;
  /** Tokens. */
  readonly context: number | null;
  readonly environments: readonly Environment[] | null;
  /** The price. Null means that nothing is charged, unless `priceOf` is set. */
  readonly price: Readonly<Price> | null;
  /** `vendor/model` of the price list. Its price applies if `price` is null. Null means none. */
  readonly priceOf: string | null;
  /** The model's deployments. If empty, the model runs on every upstream that lists its id. */
  readonly deployments: readonly EntryDeployment[];
  /** Public ids of the model's fallbacks, best first. */
  readonly fallbacks: readonly string[];
  /** Other ids by which clients may request the model. Each matches `aliasPattern`. */
  readonly aliases: readonly string[];
  /** null: no policies. */
  readonly policies: ModelPolicies | null;
}

export interface StoredModel extends ModelSettings {
  /** The public id. */
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

/**
 * The source of a model. `file`: declared in headrace.yaml. `database`: declared over the API. `upstream`: only
 * listed by an upstream.
 */
export const modelSources = ["file", "database", "upstream"] as const;
export type ModelSource = (typeof modelSources)[number];

export interface ModelStore {
  /** Lists models, ordered by id. */
  listModels(): Promise<StoredModel[]>;
  /** Adds a model. Returns false if a model with this id exists. */
  insertModel(model: StoredModel, event: AuditEvent): Promise<boolean>;
  /** Changes a model. Returns false if it does not exist any more. */
  changeModel(model: StoredModel, event: AuditEvent): Promise<boolean>;
  /** Deletes a model. Returns false if it does not exist. */
  deleteModel(id: string, event: AuditEvent): Promise<boolean>;
}

export const maxModelIdLength = 256;
export const maxFallbacks = 8;
export const maxAliases = 32;
/** An alias: a name, or a prefix ending in `*`. The maximum length is `maxModelIdLength`. */
export const aliasPattern = /^(?:[!-)+-~]+\*?|\*)$/;
/** The rule for aliases, as error messages and the API reference state it. */
export const aliasText = "1 to 256 printable ASCII characters without spaces, and no * but at the end";
export const maxWeight = 1_000_000;
export const maxContext = 1_000_000_000;

/** A contradiction within a model's declaration or with other models. */
export interface EntryFault {
  /** Path of the faulty member: `["deployments", 0, "upstream"]`. */
  readonly path: readonly (string | number)[];
  /** The message. Continues a sentence that begins with the path. */
  readonly message: string;
  /** The remedy as a full sentence. */
  readonly fix: string;
}

const maxNamed = 12;

/** Returns the faults of a model's deployments. `upstreams` has the names of all upstreams and nodes. */
export function deploymentFaults(
  id: string,
  deployments: readonly { upstream: string; model?: string | null | undefined }[],
  upstreams: readonly string[],
): EntryFault[] {
  const seen = new Set<string>();
  return deployments.flatMap((deployment, index): EntryFault[] => {
    const path = ["deployments", index];
    if (!upstreams.includes(deployment.upstream)) {
      const meant = nearest(deployment.upstream, upstreams);
      const guess = meant === undefined ? "" : `Did you mean ${meant}? `;
      const names = upstreams.slice(0, maxNamed).join(", ") + (upstreams.length > maxNamed ? ", …" : "");
      const fix = `${guess}Name one of ${names}, or add the upstream.`;
      return [{ path: [...path, "upstream"], message: "names an upstream that is not in upstreams", fix }];
    }
    const target = JSON.stringify([deployment.upstream, deployment.model ?? id]);
    if (seen.has(target)) {
      const fix = "Remove one of the two, and give the other the weight of both.";
      return [{ path, message: "is the same upstream and model as an earlier deployment", fix }];
    }
    seen.add(target);
    return [];
  });
}

/**
 * Returns the faults of a model's fallbacks. Two models may be fallbacks of each other, because only one step is
 * followed.
 */
export function fallbackFaults(
  {
    id,
    capabilities,
    fallbacks,
  }: { id: string; fallbacks: readonly string[]; capabilities?: Capabilities | undefined },
  capabilitiesOf: (id: string) => Capabilities | undefined,
): EntryFault[] {
  return fallbacks.flatMap((other, index): EntryFault[] => {
    const fault = (message: string, fix: string) => [{ path: ["fallbacks", index], message, fix }];
    if (other === id) return fault("is the model itself", "Name another model.");
    if (fallbacks.indexOf(other) !== index) return fault("is named twice", "Name each model once.");
    const lacks = lackedCapability(capabilities, capabilitiesOf(other));
    return lacks ? fault(`cannot do what ${id} does: its ${lacks} is false`, "Name a model that can.") : [];
  });
}

/** Returns a capability that the first model has and the second is known to lack; undefined if there is none. */
export function lackedCapability(
  wanted: Readonly<Capabilities> | null | undefined,
  had: Capabilities | undefined,
): keyof Capabilities | undefined {
  return capabilityNames.find((name) => wanted?.[name] === true && had?.[name] === false);
}

/** Returns the faults of a model's aliases. `ownerOf` returns the other model that has an alias, or undefined. */
export function aliasFaults(
  { id, aliases }: { id: string; aliases: readonly string[] },
  ownerOf: (alias: string) => string | undefined,
): EntryFault[] {
  return aliases.flatMap((alias, index): EntryFault[] => {
    const fault = (message: string, fix: string) => [{ path: ["aliases", index], message, fix }];
    if (alias === id) return fault("is the id of the model itself", "Leave it out.");
    if (aliases.indexOf(alias) !== index) return fault("is named twice", "Name each alias once.");
    const owner = ownerOf(alias);
    if (owner === undefined) return [];
    return fault(`is an alias of the model ${owner} already`, "Remove it from one of the two.");
  });
}
