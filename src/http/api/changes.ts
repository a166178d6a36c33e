// Helpers for endpoints that change something: the origin for the audit log, request bodies, and answers with secrets.
import type { Clock } from "../../base/clock.ts";
import type { Origin } from "../../policy/records/audit.ts";
import type { Exchange } from "../exchange/route.ts";

export const bodyErrors = ["invalid_request", "request_too_large", "unsupported_media_type"] as const;

/** Headers for answers that contain a secret, which must not be cached. */
export const noStore = { "cache-control": "no-store" };

export function originOf({ clientAddress, requestId }: Exchange, { clock }: { clock: Clock }) {
  return { nowSeconds: clock.nowSeconds(), clientAddress, requestId } satisfies Origin;
}
