// Security headers that tell browsers how to treat answers.
import type { AnswerHeaders } from "./route.ts";

/** Sent with every answer, so that browsers do not guess another content type. */
export const contentTypeOptions = "nosniff";

/** Browser features that our pages do not use and therefore disable. */
const unused = ["accelerometer", "camera", "geolocation", "gyroscope", "magnetometer", "microphone", "payment", "usb"];

/** Security headers of everything that browsers load, including redirects, scripts and errors. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": unused.map((feature) => `${feature}=()`).join(", "),
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

/** HSTS for a year, if the public URL is https. Subdomains are excluded, because others may own them. */
const strictTransport = "max-age=31536000";

/** Adds security headers to an answer that needs no credential. `isPage` adds those of HTML pages. */
export function addBrowserHeaders(headers: AnswerHeaders, isPage: boolean, publicUrl: string | undefined): void {
  if (isPage) for (const name in pageHeaders) headers[name] ??= pageHeaders[name] ?? "";
  if (publicUrl?.startsWith("https:")) headers["strict-transport-security"] = strictTransport;
  // Over plain http, browsers ignore this header with a warning, except on localhost.
  else if (publicUrl !== undefined) delete headers["cross-origin-opener-policy"];
}
