// Removes model servers' error texts from the list of attempts, except known phrases that quote no request.
import type { z } from "zod";
import { publicReason } from "../../../domain/usage/public-reason.ts";
import type { oneRequest } from "../usage/request-wire.ts";

type Steps = z.infer<typeof oneRequest>["trail"];

/** Results whose reason may be a text from the model server. For all other results, the gateway writes the reason. */
const saidByServer: ReadonlySet<string> = new Set(["refused", "broke_off", "timed_out", "unreachable", "cancelled"]);

/** Returns the attempts. Reasons that may come from a model server lose all parts that may contain content. */
export function publicTrail(steps: Steps): Steps {
  return steps.map((step) => ({
    ...step,
    reason: saidByServer.has(step.result) ? publicReason(step.reason) : step.reason,
  }));
}
