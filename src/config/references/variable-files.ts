// Reads the values of variables from files. `NAME_FILE` names the file for NAME, or systemd's directory of credentials
// contains a file called NAME.
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Env } from "../formats.ts";
import { locationOutsideFile, type Problem, throwIfAny } from "../problems.ts";
import { fileReference, type SecretValues } from "./secret-values.ts";

/** Returns the reference of the file that has the value of the variable. */
export function variableReference(name: string, env: Env, cwd: string): string | undefined {
  const path = env[`${name}_FILE`]?.trim();
  if (path) return fileReference(path, cwd, env);
  const directory = env["CREDENTIALS_DIRECTORY"] ?? "";
  const credential = join(directory, name);
  return isAbsolute(directory) && existsSync(credential) ? `file:${credential}` : undefined;
}

/**
 * Returns the environment with the values of the named variables, read from their files. Throws a ConfigError if a file
 * cannot be read, or if a variable and its `NAME_FILE` are both set.
 */
export async function withVariableFiles(
  env: Env,
  names: readonly string[],
  { secrets, cwd }: { secrets: SecretValues; cwd: string },
): Promise<Env> {
  const files = names.flatMap((name) => {
    const reference = variableReference(name, env, cwd);
    return reference === undefined || (env[name] && !env[`${name}_FILE`]) ? [] : [{ name, reference }];
  });
  if (files.length === 0) return env;
  const references = files.map(({ reference }) => reference);
  await secrets.resolve(references);
  const values: Record<string, string> = {};
  const problems: Problem[] = [];
  for (const { name, reference } of files) {
    const location = locationOutsideFile(env[`${name}_FILE`] ? `${name}_FILE` : name);
    const read = secrets.get(reference);
    if (env[name]) problems.push({ ...location, message: `is set beside ${name}`, fix: "Unset one of the two." });
    else if (read?.ok) values[name] = read.value;
    else if (read) problems.push({ ...location, message: read.message, fix: read.fix });
  }
  throwIfAny(problems);
  secrets.use("variables", references);
  return { ...env, ...values };
}
