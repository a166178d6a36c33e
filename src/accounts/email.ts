// Checks e-mail addresses as people type them.
import { invalidRequest } from "../base/errors.ts";
import { normalizedEmail } from "../domain/people/person.ts";

/** Maximum length of an address (RFC 5321, 4.5.3.1, as corrected by erratum 1690). */
const longest = 254;
const maxLocalPartLength = 64;
/**
 * The part before the `@`. Quoting, lists, comments and invisible characters are excluded, so that the address is
 * exactly the text that people see.
 */
const localPart = /^[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*$/u;
const domain =
  /^(?:[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?\.)*[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u;

/** Returns the normalized address. Throws `invalid_request` for an invalid address. */
export function checkEmail(text: string): string {
  // The length is checked first, because a form may contain much more.
  const email = text.length > 2 * longest ? "" : normalizedEmail(text);
  const at = email.lastIndexOf("@");
  const [local, host] = [email.slice(0, Math.max(at, 0)), email.slice(at + 1)];
  const isPlausible = email.length <= longest && local.length <= maxLocalPartLength && localPart.test(local);
  if (at > 0 && isPlausible && domain.test(host)) return email;
  throw invalidRequest(`email: must be one e-mail address, such as ada@example.com, of at most ${longest} characters.`);
}
