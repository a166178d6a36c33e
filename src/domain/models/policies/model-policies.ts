// What an operator wants of the requests for a model, beyond that they are answered; nothing of it where it is left out.
import type { CachePolicy } from "./cache.ts";
import type { OverflowPolicy } from "./overflow.ts";
import type { ShadowPolicy, SplitPart } from "./traffic.ts";

export interface ModelPolicies {
  /** Whether a stream that its server cuts goes on at another deployment, where the text can be continued exactly. */
  readonly continuation?: boolean;
  /** Deployments that are asked only where the others keep a request waiting, or as else is said. */
  readonly overflow?: OverflowPolicy;
  /** Answers that are given again. */
  readonly cache?: CachePolicy;
  /** Names of guardrails that look at its requests and answers, in this order. */
  readonly guardrails?: readonly string[];
  /** A second model that gets a share of the requests as well, its answers unseen. */
  readonly shadow?: ShadowPolicy;
  /** Models that answer a share of the requests in its place. */
  readonly split?: readonly SplitPart[];
}
