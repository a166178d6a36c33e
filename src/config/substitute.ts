// Replaces `${NAME}` in texts of the configuration file. A value can only change its own text, never the YAML
// structure.
import type { Env } from "./formats.ts";

export type Substituted =
  | { ok: true; text: string /** Variables that the text now holds the values of. */; names: readonly string[] }
  | { ok: false; message: string; fix: string };

// Matches `$${`, and `${` with the text up to its brace, if there is one.
const referencePattern = /\$\$\{|\$\{([^}]*)(\}?)/g;
const namePattern = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

/**
 * Replaces `${NAME}` and `${NAME:-default}` by the variable's value. The default is also used for an empty variable, as
 * in a shell. `$${` becomes a literal `${`. A value that contains `${` is not replaced again.
 */
export function substitute(text: string, env: Env): Substituted {
  const names: string[] = [];
  let failure: Substituted | undefined;
  const replaced = text.replaceAll(referencePattern, (match: string, inner: string | undefined, brace: string) => {
    if (match === "$${") return "${";
    const [, name, fallback] = brace === "}" ? (namePattern.exec(inner ?? "") ?? []) : [];
    if (name === undefined) {
      failure ??= {
        ok: false,
        message: "has a ${ that begins no variable",
        fix: `Write \${NAME} or \${NAME:-default}, and $\${ for a literal \${.`,
      };
      return "";
    }
    names.push(name);
    const value = env[name];
    if (fallback !== undefined) return value || fallback;
    if (value === undefined) {
      failure ??= {
        ok: false,
        message: `uses the environment variable ${name}, which is not set`,
        fix: `Set ${name} where Headrace is started, or write a default: \${${name}:-default}.`,
      };
    }
    return value ?? "";
  });
  return failure ?? { ok: true, text: replaced, names };
}
