// Removes the model servers' own words from a trail, unless they are known phrases that quote no request.
import type { z } from "zod";
import { publicReason } from "../../../domain/usage/public-reason.ts";
import type { oneRequest } from "../usage/request-wire.ts";

type Steps = z.infer<typeof oneRequest>["trail"];

/** Results whose reason may be a text of the model server. The gateway itself writes the reasons of the others. */
const saidByServer: ReadonlySet<string> = new Set(["refused", "broke_off", "timed_out", "unreachable", "cancelled"]);

/** Returns the steps with only those parts of the reasons that contain no content. */
export function publicTrail(steps: Steps): Steps {
  return steps.map((step) => ({
    ...step,
    reason: saidByServer.has(step.result) ? publicReason(step.reason) : step.reason,
  }));
}
