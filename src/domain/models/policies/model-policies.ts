// The policies of a model: how its requests are handled beyond a plain answer. A missing policy is off.
import type { CachePolicy } from "./cache.ts";
import type { OverflowPolicy } from "./overflow.ts";
import type { ShadowPolicy, SplitPart } from "./traffic.ts";

export interface ModelPolicies {
  /** True if another deployment continues a stream that its server cut, if the text can be continued exactly. */
  readonly continuation?: boolean;
  /** Deployments that are used only if the others would keep a request waiting, or under other conditions. */
  readonly overflow?: OverflowPolicy;
  /** The response cache. */
  readonly cache?: CachePolicy;
  /** Names of guardrails that check the model's requests and answers, in this order. */
  readonly guardrails?: readonly string[];
  /** A second model that also gets a share of the requests. Clients never see its answers. */
  readonly shadow?: ShadowPolicy;
  /** Other models that answer a share of the requests. */
  readonly split?: readonly SplitPart[];
}
