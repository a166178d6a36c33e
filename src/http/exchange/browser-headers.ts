// Headers that tell browsers how to treat each answer: no guessing of types, no framing, no leaks.
import type { AnswerHeaders } from "./route.ts";

/** Sent with every answer: a browser must trust the declared type. */
export const contentTypeOptions = "nosniff";

/** Browser features that none of our pages uses. */
const unused = ["accelerometer", "camera", "geolocation", "gyroscope", "magnetometer", "microphone", "payment", "usb"];

/** Headers for everything that browsers load, including redirects, scripts and errors. Pages add more. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": unused.map((feature) => `${feature}=()`).join(", "),
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

/**
 * Tells browsers to use https for a year, if the public URL is https. Sent with everything that needs no credential,
 * because a browser loads that first. Subdomains are excluded, because they may belong to others.
 */
const strictTransport = "max-age=31536000";

/** Adds the headers for browsers to everything that needs no credential, since a browser may come there first. */
export function addBrowserHeaders(headers: AnswerHeaders, isPage: boolean, publicUrl: string | undefined): void {
  if (isPage) for (const name in pageHeaders) headers[name] ??= pageHeaders[name] ?? "";
  if (publicUrl?.startsWith("https:")) headers["strict-transport-security"] = strictTransport;
  // Over plain http, browsers accept this header only from the same machine and complain elsewhere.
  else if (publicUrl !== undefined) delete headers["cross-origin-opener-policy"];
}
