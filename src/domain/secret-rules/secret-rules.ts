// The built-in rules for credentials and personal data, with names and groups.
import type { NamedPattern } from "../../base/patterns/pattern-set.ts";
import { credentialPatterns } from "./credential-rules.ts";

export const ruleGroups = ["credentials", "personal"] as const;
export type RuleGroup = (typeof ruleGroups)[number];

export interface SecretRule extends NamedPattern {
  readonly group: RuleGroup;
  /** Describes what the rule finds, for the table in the guide. */
  readonly finds: string;
}

const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const hex = "[0-9a-fA-F]{1,4}";

const personalRules: readonly SecretRule[] = [
  {
    name: "email",
    group: "personal",
    finds: "e-mail addresses",
    pattern: "\\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\\.){1,8}[A-Za-z]{2,24}\\b",
  },
  {
    name: "phone",
    group: "personal",
    finds: "phone numbers with their country (`+49 30 901820`), and those of North America with separators",
    pattern:
      "(?:\\+[1-9]\\d{0,2}(?:[ .-]?\\(?\\d{1,4}\\)?){2,6}\\b|\\b\\(?[2-9]\\d{2}\\)?[ .-][2-9]\\d{2}[.-]\\d{4}\\b|\\([2-9]\\d{2}\\) ?[2-9]\\d{2}-\\d{4}\\b)",
    isMeant: isPhone,
  },
  {
    name: "card",
    group: "personal",
    finds: "numbers of payment cards, with their check digit",
    pattern: "\\b[2-6]\\d{3}(?:[ -]?\\d){8,15}\\b",
    isMeant: isCard,
  },
  {
    name: "iban",
    group: "personal",
    finds: "IBANs, with their checksum",
    pattern: "\\b[A-Z]{2}\\d{2}(?: ?[A-Z0-9]){11,30}\\b",
    isMeant: isIban,
  },
  {
    name: "ip",
    group: "personal",
    finds: "IPv4 and IPv6 addresses, but not those of loopback and `0.0.0.0`",
    pattern: `(?:\\b${octet}\\.${octet}\\.${octet}\\.${octet}\\b|\\b(?:${hex}:){7}${hex}\\b|\\b(?:${hex}:){1,6}(?::${hex}){1,6}\\b)`,
    isMeant: isAddress,
  },
];

export const secretRules: readonly SecretRule[] = [
  ...Object.entries(credentialPatterns).map(([name, pattern]) => ({
    name,
    pattern,
    group: "credentials" as const,
    finds: `${name.replaceAll("-", " ")}s`,
  })),
  ...personalRules,
];

/**
 * Returns the rules with these names or groups; all rules if `names` is empty. `unknown` has the names that are
 * neither.
 */
export function rulesOf(names: readonly string[]): { rules: readonly SecretRule[]; unknown: readonly string[] } {
  if (names.length === 0) return { rules: secretRules, unknown: [] };
  const unknown = names.filter((name) => !secretRules.some((rule) => rule.name === name || rule.group === name));
  return { rules: secretRules.filter(({ name, group }) => names.includes(name) || names.includes(group)), unknown };
}

function isPhone(text: string): boolean {
  const digits = text.replace(/\D/g, "").length;
  return digits >= 8 && digits <= 15;
}

/** Reports whether the digits of a card number match Luhn's formula. */
function isCard(text: string): boolean {
  const digits = text.replace(/\D/g, "");
  if (digits.length < 13 || digits.length > 19) return false;
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index]);
    const doubled = digit * 2;
    sum += index % 2 === 0 ? digit : doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Reports whether the check digits of an IBAN are right (ISO 7064, mod 97-10). */
function isIban(text: string): boolean {
  const plain = text.replaceAll(" ", "");
  if (plain.length < 15 || plain.length > 34) return false;
  let rest = 0;
  for (const letter of plain.slice(4) + plain.slice(0, 4)) {
    const value = Number.parseInt(letter, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

function isAddress(text: string): boolean {
  return !/^(?:127\.|0\.0\.0\.0$)/.test(text) && text !== "::1";
}
