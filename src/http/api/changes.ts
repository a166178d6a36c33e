// What endpoints that change something have in common: where a change comes from, and how a body and a secret are dealt with.
import type { Clock } from "../../base/clock.ts";
import type { Origin } from "../../policy/records/audit.ts";
import type { Exchange } from "../exchange/route.ts";

export const bodyErrors = ["invalid_request", "request_too_large", "unsupported_media_type"] as const;

/** An answer that shows a secret is kept by nobody on the way. */
export const noStore = { "cache-control": "no-store" };

export function originOf({ clientAddress, requestId }: Exchange, { clock }: { clock: Clock }) {
  return { nowSeconds: clock.nowSeconds(), clientAddress, requestId } satisfies Origin;
}
