// Security headers that tell browsers how to treat answers.
import type { AnswerHeaders } from "./route.ts";

/** Sent with every answer, so that browsers do not guess another content type. */
export const contentTypeOptions = "nosniff";

/** Browser features that the gateway's pages do not use and therefore disable. */
const unused = ["accelerometer", "camera", "geolocation", "gyroscope", "magnetometer", "microphone", "payment", "usb"];

/** Security headers of everything that browsers load: pages, redirects, scripts and errors. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": unused.map((feature) => `${feature}=()`).join(", "),
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

/** HSTS for a year, sent if the public URL is https. Subdomains are not included, because other people may own them. */
const strictTransport = "max-age=31536000";

/** Adds security headers to an answer that needs no credential. If `isPage`, adds the headers of HTML pages too. */
export function addBrowserHeaders(headers: AnswerHeaders, isPage: boolean, publicUrl: string | undefined): void {
  if (isPage) for (const name in pageHeaders) headers[name] ??= pageHeaders[name] ?? "";
  if (publicUrl?.startsWith("https:")) headers["strict-transport-security"] = strictTransport;
  // Over plain http, browsers ignore this header and log a warning, except on localhost.
  else if (publicUrl !== undefined) delete headers["cross-origin-opener-policy"];
}
