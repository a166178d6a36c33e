// Models as operators declare them, in the configuration file or over the API, and what such an entry must agree on.

import { nearest } from "../../base/text/nearest.ts";
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import { type Capabilities, capabilityNames } from "./capabilities.ts";
import type { ModelPolicies } from "./policies/model-policies.ts";
import type { Price } from "./price.ts";

/** One place where a declared model runs. */
export interface EntryDeployment {
  /** Name of an upstream or node, or `builtInEngineName`. */
  readonly upstream: string;
  /** The upstream's own id of the model. */
  readonly model: string;
  readonly weight: number;
}

/** The settings of a model. Those left open (null, or an empty list) are as whoever offers the model says. */
export interface ModelSettings {
  readonly ownedBy: string | null;
  readonly capabilities: Readonly<Capabilities> | null;
  /** Tokens. */
  readonly context: number | null;
  readonly environments: readonly Environment[] | null;
  /** null: nothing is charged. */
  readonly price: Readonly<Price> | null;
  /** `vendor/model` of the price list, whose price it has where it has none of its own; null: none. */
  readonly priceOf: string | null;
  /** Its deployments; empty: wherever it is found under its id. */
  readonly deployments: readonly EntryDeployment[];
  /** Public ids of models that stand in for it, best first. */
  readonly fallbacks: readonly string[];
  /** Other names by which clients may ask for it, each as of `aliasPattern`. */
  readonly aliases: readonly string[];
  /** null: nothing is done with its requests beyond that they are answered. */
  readonly policies: ModelPolicies | null;
}

export interface StoredModel extends ModelSettings {
  /** The public id. */
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** `file`: declared in headrace.yaml; `database`: declared over the API; `upstream`: listed by an upstream, and no more. */
export const modelSources = ["file", "database", "upstream"] as const;
export type ModelSource = (typeof modelSources)[number];

export interface ModelStore {
  /** Models by id. */
  listModels(): Promise<StoredModel[]>;
  /** False where there is one of this id. */
  insertModel(model: StoredModel, event: AuditEvent): Promise<boolean>;
  /** False, and nothing is written, where it is not there any more. */
  changeModel(model: StoredModel, event: AuditEvent): Promise<boolean>;
  /** False where there is none. */
  deleteModel(id: string, event: AuditEvent): Promise<boolean>;
}

export const maxModelIdLength = 256;
export const maxFallbacks = 8;
export const maxAliases = 32;
/** A name, or, with a `*` at its end, all names that begin so. At most `maxModelIdLength` characters. */
export const aliasPattern = /^(?:[!-)+-~]+\*?|\*)$/;
/** In the words of errors and of the reference. */
export const aliasText = "1 to 256 printable ASCII characters without spaces, and no * but at the end";
export const maxWeight = 1_000_000;
export const maxContext = 1_000_000_000;

/** A contradiction of an entry with itself or with what there is. */
export interface EntryFault {
  /** The place within the entry: `["deployments", 0, "upstream"]`. */
  readonly path: readonly (string | number)[];
  /** Reads on after the place. */
  readonly message: string;
  /** A full sentence. */
  readonly fix: string;
}

const maxNamed = 12;

/** `upstreams`: names of all that a deployment may be at. */
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

/** Two models may stand in for each other: whoever stands in is asked itself, and never its own fallbacks. */
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

/** What one model can do, and the other is known not to. */
export function lackedCapability(
  wanted: Readonly<Capabilities> | null | undefined,
  had: Capabilities | undefined,
): keyof Capabilities | undefined {
  return capabilityNames.find((name) => wanted?.[name] === true && had?.[name] === false);
}

/** `ownerOf`: the other model that has the alias already; undefined where none has. */
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
