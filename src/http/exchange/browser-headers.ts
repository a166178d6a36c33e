// What browsers are told about each answer besides what it says itself: nothing of ours is guessed at, framed or spied on.
import type { AnswerHeaders } from "./route.ts";

/** With every answer: a browser takes it for what it says it is. */
export const contentTypeOptions = "nosniff";

/** Features that none of our pages uses. */
const unused = ["accelerometer", "camera", "geolocation", "gyroscope", "magnetometer", "microphone", "payment", "usb"];

/** With whatever is there for browsers, redirects, scripts and errors too; a page of its own says more. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": unused.map((feature) => `${feature}=()`).join(", "),
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

/**
 * Where browsers reach us by https, they keep to it for a year. With whatever needs no credential: there a browser comes
 * first. Not for subdomains, which may be somebody else's.
 */
const strictTransport = "max-age=31536000";

/** Adds what browsers are told with all that needs no credential: there one may come first. */
export function tellBrowsers(headers: AnswerHeaders, isPage: boolean, publicUrl: string | undefined): void {
  if (isPage) for (const name in pageHeaders) headers[name] ??= pageHeaders[name] ?? "";
  if (publicUrl?.startsWith("https:")) headers["strict-transport-security"] = strictTransport;
  // By plain http browsers take it from this machine alone, and complain elsewhere.
  else if (publicUrl !== undefined) delete headers["cross-origin-opener-policy"];
}
