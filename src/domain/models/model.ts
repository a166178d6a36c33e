// Models as the public API names them, and the deployments that serve them.

import type { Environment } from "../api-key.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Engine } from "./engine.ts";
import type { ModelPolicies } from "./policies/model-policies.ts";
import type { Price } from "./price.ts";

/** One place where a model runs. */
export interface Deployment {
  engine: Engine;
  /** The engine's own id of the model. */
  model: string;
  /** Relative share of requests; at least 1. */
  weight: number;
  /** Whether an operator marked where it runs as local: requests that must not leave may go there. Left out: no. */
  local?: boolean;
}

export interface Model {
  /** The public id. */
  id: string;
  /** Unix seconds. */
  created: number;
  ownedBy: string;
  capabilities: Capabilities | undefined;
  /** Tokens, prompt and completion together; undefined where nobody says. */
  context: number | undefined;
  /** Environments whose keys may use it. */
  environments: readonly Environment[];
  price: Price | undefined;
  deployments: readonly Deployment[];
  /** Public ids of models that stand in where none of its deployments answers, best first. */
  fallbacks?: readonly string[] | undefined;
  /** Other names by which clients may ask for it; one that ends in `*` stands for all names that begin so. */
  aliases?: readonly string[] | undefined;
  /** What an operator wants of its requests beyond an answer. Left out: nothing, and nothing of it is looked for. */
  policies?: ModelPolicies | undefined;
}
