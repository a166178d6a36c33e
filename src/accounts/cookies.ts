// Cookies that identify a browser: bound to this host with https, out of reach of scripts, and parsed unambiguously.

/** `__Host-` restricts a cookie to exactly this host over https (RFC 6265bis, 4.1.3.2). */
export function hostCookieName(name: string, isSecure: boolean): string {
  return isSecure ? `__Host-${name}` : name;
}

/**
 * Returns the value of the cookie in a `Cookie` header. Returns undefined if the cookie is missing, or occurs twice,
 * because another site may have set one of the two.
 */
export function cookieIn(header: string | null, name: string): string | undefined {
  const start = `${name}=`;
  const found = (header ?? "")
    .split(";")
    // Removes only the blanks that browsers add. If another character were removed from the start, a cookie with that
    // character before `__Host-` would pass, and browsers do not protect such a name.
    .map(withoutBlanks)
    .filter((pair) => pair.startsWith(start));
  return found.length === 1 ? found[0]?.slice(start.length) : undefined;
}

/**
 * Returns the value of `Set-Cookie`. An empty value with age 0 clears the cookie. Lax: links from other sites send the
 * cookie, forms and scripts from other sites do not (RFC 6265bis, 5.6.7).
 */
export function setCookie(name: string, value: string, given: { ageSeconds: number; isSecure: boolean }): string {
  const secure = given.isSecure ? "; Secure" : "";
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${given.ageSeconds}${secure}`;
}

function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
