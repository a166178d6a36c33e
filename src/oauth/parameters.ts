// Reads the parameters of a request (RFC 6749, 3.2).

const known = new Set([
  ...["grant_type", "code", "redirect_uri", "code_verifier", "refresh_token", "device_code", "scope"],
  ...["token", "token_type_hint", "client_id", "client_secret"],
]);

/**
 * Reports whether a parameter may be sent only once. Unknown ones are ignored, and `resource` may be repeated (RFC
 * 8707, 2.2).
 */
export function isSentOnce(name: string): boolean {
  return known.has(name);
}

/** Returns the parameters that have a value. Empty parameters count as missing (RFC 6749, 3.2). */
export function presentParameters(fields: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...fields].filter(([, value]) => value !== ""));
}
