// Determines the browser and the origin behind a request.
import type { BrowserOrigin } from "../../accounts/browser-sessions.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import type { Locality } from "./locality.ts";
import type { Exchange } from "./route.ts";

export function browserOrigin({ req, clientAddress, requestId }: Exchange): BrowserOrigin {
  return { clientAddress, requestId, userAgent: req.headers.get("user-agent") };
}

/** Reports whether the origin is that of the gateway's own pages. */
export function isOwnOrigin(
  origin: string,
  req: IncomingRequest,
  publicUrl: string | undefined,
  locality: Locality,
): boolean {
  return origin === pageOrigin(req, publicUrl, locality);
}

/**
 * Returns the origin of the gateway's pages, which is that of the public URL. If no public URL is set, returns the
 * origin to which a local request was sent, and undefined for any other request.
 */
export function pageOrigin(
  req: IncomingRequest,
  publicUrl: string | undefined,
  locality: Locality,
): string | undefined {
  if (publicUrl !== undefined) return new URL(publicUrl).origin;
  if (!locality.isLocal(req)) return undefined;
  return URL.parse(`http://${req.headers.get("host") ?? ""}`)?.origin;
}
