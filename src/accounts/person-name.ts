// Names of people as they type them.
import { invalidRequest } from "../base/errors.ts";
import { keyName } from "../policy/manage/key-values.ts";

const longest = 100;

/** Returns the name without surrounding spaces. Throws `invalid_request`, naming the field `name`. */
export function checkPersonName(text: string): string {
  if (text.length <= 2 * longest && [...text.trim()].length <= longest) return keyName(text.normalize("NFC"));
  throw invalidRequest(`name: must be 1 to ${longest} printable characters, not only spaces.`);
}
