// Models with their public ids, and their deployments.

import type { Environment } from "../api-key.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Engine } from "./engine.ts";
import type { ModelPolicies } from "./policies/model-policies.ts";
import type { Price } from "./price.ts";

/** A model at one engine. A model may have several deployments. */
export interface Deployment {
  engine: Engine;
  /** The model's id at the engine. */
  model: string;
  /** Relative share of the model's requests. At least 1. */
  weight: number;
  /**
   * True if an operator marked the engine as local. Requests of keys with `never_leaves` may then use it. Default:
   * false.
   */
  local?: boolean;
}

export interface Model {
  /** The public id. */
  id: string;
  /** Unix seconds. */
  created: number;
  ownedBy: string;
  capabilities: Capabilities | undefined;
  /** The context length: tokens of prompt and completion together. Undefined if unknown. */
  context: number | undefined;
  /** Unix seconds after which no deployment serves the model, as its upstreams announced. Undefined if unknown. */
  shutdownAt?: number | undefined;
  /** Environments whose keys may use the model. */
  environments: readonly Environment[];
  price: Price | undefined;
  deployments: readonly Deployment[];
  /** Public ids of fallback models in order of preference. They are used if no deployment answers. */
  fallbacks?: readonly string[] | undefined;
  /** Other ids under which clients may request the model, or prefixes of ids ending in `*`. */
  aliases?: readonly string[] | undefined;
  /** The model's policies. Undefined if it has none. */
  policies?: ModelPolicies | undefined;
}
