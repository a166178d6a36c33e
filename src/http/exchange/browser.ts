// What is known of the browser behind a request.
import type { BrowserOrigin } from "../../accounts/browser-sessions.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import type { Locality } from "./locality.ts";
import type { Exchange } from "./route.ts";

export function browserOrigin({ req, clientAddress, requestId }: Exchange): BrowserOrigin {
  return { clientAddress, requestId, userAgent: req.headers.get("user-agent") };
}

/** Whether pages of this origin are ours. */
export function isOwnOrigin(
  origin: string,
  req: IncomingRequest,
  publicUrl: string | undefined,
  locality: Locality,
): boolean {
  return origin === pageOrigin(req, publicUrl, locality);
}

/**
 * The origin under which a browser sees our pages: that of the public URL. In development without one, the server has
 * several names: `localhost`, loopback addresses and `allowed_hosts`. Then it is the one that the request was sent to,
 * if it comes from this machine, or else undefined.
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
