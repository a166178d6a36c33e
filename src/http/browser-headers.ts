// What browsers are told about each answer besides what it says itself: nothing of ours is guessed at, framed or spied on.

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
export const strictTransport = "max-age=31536000";
