// The policies of a model, beyond its plain settings. A missing policy is off.
import type { CachePolicy } from "./cache.ts";
import type { OverflowPolicy } from "./overflow.ts";
import type { ShadowPolicy, SplitPart } from "./traffic.ts";

export interface ModelPolicies {
  /** True if another deployment may continue a stream that its server cut. The text must be continued exactly. */
  readonly continuation?: boolean;
  /** Additional deployments, used if the usual deployments would keep a request waiting, or under other conditions. */
  readonly overflow?: OverflowPolicy;
  /** The response cache. */
  readonly cache?: CachePolicy;
  /** Names of guardrails that check the model's requests and answers, in this order. */
  readonly guardrails?: readonly string[];
  /** A second model that gets copies of some requests. Clients never see its answers. */
  readonly shadow?: ShadowPolicy;
  /** Other models that answer a share of the requests. */
  readonly split?: readonly SplitPart[];
}
