// Replaces `${NAME}`, `${file:PATH}` and `${vault:PATH#FIELD}` in texts of the configuration file. A value can only
// change its own text, never the YAML structure.
import type { Env } from "./formats.ts";
import type { SecretRead } from "./references/secret-state.ts";

export type Substituted =
  | { ok: true; text: string /** References that the text now holds the values of. */; names: readonly string[] }
  | { ok: false; message: string; fix: string };

// Matches `$${`, and `${` with the text up to its brace, if there is one.
const referencePattern = /\$\$\{|\$\{([^}]*)(\}?)/g;
const namePattern = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

/** Finds the secrets that stand in files and in Vault. */
export interface SecretLookup {
  /** Returns the value of `file:PATH` or `vault:PATH#FIELD`. */
  secret(reference: string): SecretRead;
  /** Returns the value of an unset variable from the file that stands for it; undefined if there is none. */
  fileOf(variable: string): SecretRead | undefined;
}

const noSecrets: SecretLookup = {
  secret: () => ({
    ok: false,
    message: "refers to a secret that only the server reads",
    fix: "Use an environment variable.",
  }),
  fileOf: () => undefined,
};

const secretPattern = /^(file|vault):./s;

/**
 * Replaces `${NAME}` and `${NAME:-default}` by the variable's value, and other references by their secrets. The default
 * is also used for an empty variable, as in a shell. `$${` becomes a literal `${`. A value that contains `${` is not
 * replaced again.
 */
export function substitute(text: string, env: Env, { secret, fileOf }: SecretLookup = noSecrets): Substituted {
  const names: string[] = [];
  let failure: Substituted | undefined;
  const secretOf = (read: SecretRead) => {
    if (read.ok) return read.value;
    failure ??= read;
    return "";
  };
  const replaced = text.replaceAll(referencePattern, (match: string, inner: string | undefined, brace: string) => {
    if (match === "$${") return "${";
    if (brace === "}" && inner !== undefined && secretPattern.test(inner)) {
      names.push(inner);
      return secretOf(secret(inner));
    }
    const [, name, fallback] = brace === "}" ? (namePattern.exec(inner ?? "") ?? []) : [];
    if (name === undefined) {
      failure ??= {
        ok: false,
        message: "has a ${ that begins no variable",
        fix: `Write \${NAME}, \${NAME:-default}, \${file:PATH} or \${vault:PATH#FIELD}, and $\${ for a literal \${.`,
      };
      return "";
    }
    names.push(name);
    const value = env[name];
    const file = value ? undefined : fileOf(name);
    if (file) return secretOf(file);
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
