// The origin under which a browser sees our pages, as far as it can be known.
import type { IncomingRequest } from "../http1/message.ts";
import { isLocalRequest } from "./client-address.ts";

/**
 * That of the public URL. In development without one the server has several names: there it is the one that the request
 * was sent to, where it comes from this machine; undefined where it does not.
 */
export function pageOrigin(req: IncomingRequest, publicUrl: string | undefined): string | undefined {
  if (publicUrl !== undefined) return new URL(publicUrl).origin;
  if (!isLocalRequest(req)) return undefined;
  return URL.parse(`http://${req.headers.get("host") ?? ""}`)?.origin;
}
