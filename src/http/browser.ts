// What is known of the browser behind a request.
import type { BrowserOrigin } from "../accounts/browser-sessions.ts";
import type { IncomingRequest } from "../http1/message.ts";
import { isLocalRequest } from "./client-address.ts";
import type { Exchange } from "./route.ts";

export function browserOrigin({ req, clientAddress, requestId }: Exchange): BrowserOrigin {
  return { clientAddress, requestId, userAgent: req.headers.get("user-agent") };
}

/**
 * Whether pages of this origin are ours. In development without a public URL the server has several names, `localhost` and
 * addresses of loopback: there it is the one that the request was sent to.
 */
export function isOwnOrigin(origin: string, req: IncomingRequest, publicUrl: string | undefined): boolean {
  if (publicUrl !== undefined) return origin === new URL(publicUrl).origin;
  return isLocalRequest(req) && origin === `http://${req.headers.get("host") ?? ""}`.toLowerCase();
}
