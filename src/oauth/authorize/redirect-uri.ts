// Chooses the redirect URI of the response: a registered one, compared byte by byte (RFC 9700, 2.1 and 4.1.3).
import type { App } from "../../domain/people/app.ts";
import { redirectFault } from "../../policy/manage/app-values.ts";
import type { PageFault } from "./check.ts";
import type { Parameters } from "./parameters.ts";

/** RFC 8252, 7.3: a program on the user's computer takes any free port. Only the port of such an address may vary. */
const loopback = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::(\d{1,5}))?((?:[/?].*)?)$/;
const lastPort = 65_535;

/**
 * Returns the redirect URI of the request, which must be registered. A request may leave it out only if the app has
 * exactly one.
 */
export function registeredRedirectUri(
  parameters: Parameters,
  { redirectUris }: Pick<App, "redirectUris">,
): string | PageFault {
  if (parameters.isRepeated("redirect_uri")) {
    return { message: "redirect_uri was sent twice.", reason: "redirect_uri_repeated" };
  }
  // Addresses that were registered under earlier rules must also satisfy today's.
  const registeredUris = redirectUris.filter((uri) => redirectFault(uri) === undefined);
  const sent = parameters.get("redirect_uri");
  if (sent === undefined) {
    const [only] = registeredUris;
    if (only !== undefined && redirectUris.length === 1) return only;
    return {
      message: "redirect_uri is missing, which is for apps that have exactly one.",
      reason: "redirect_uri_missing",
    };
  }
  if (registeredUris.some((registered) => isSame(sent, registered))) return sent;
  return {
    message: "redirect_uri is none of those that the app was registered with, to the letter.",
    reason: "redirect_uri_unregistered",
  };
}

function isSame(sent: string, registered: string): boolean {
  if (sent === registered) return true;
  const [there, wanted] = [loopback.exec(sent), loopback.exec(registered)];
  if (!there || !wanted || Number(there[2] ?? 0) > lastPort) return false;
  return there[1] === wanted[1] && there[3] === wanted[3];
}
