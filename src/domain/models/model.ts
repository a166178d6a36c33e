// Models with their public ids, and their deployments.

import type { Environment } from "../api-key.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Engine } from "./engine.ts";
import type { ModelPolicies } from "./policies/model-policies.ts";
import type { Price } from "./price.ts";

/** A deployment of a model. */
export interface Deployment {
  engine: Engine;
  /** The engine's own id of the model. */
  model: string;
  /** Relative share of requests; at least 1. */
  weight: number;
  /**
   * True if an operator marked its engine as local, so requests of keys with `never_leaves` may use it. Default: false.
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
  /** Tokens of prompt and completion together. Undefined if unknown. */
  context: number | undefined;
  /** Environments whose keys may use the model. */
  environments: readonly Environment[];
  price: Price | undefined;
  deployments: readonly Deployment[];
  /** Public ids of fallback models, used if no deployment answers, best first. */
  fallbacks?: readonly string[] | undefined;
  /** Other ids under which clients may request the model, or prefixes of ids ending in `*`. */
  aliases?: readonly string[] | undefined;
  /** The model's policies. Undefined: none, and requests are not checked for any. */
  policies?: ModelPolicies | undefined;
}
