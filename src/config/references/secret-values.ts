// Values of secrets that stand outside the configuration: in files, or in Vault. The code that reads them is loaded only
// if a configuration refers to one.
import { isAbsolute, join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { type Env, resolvePath } from "../formats.ts";
import type { SecretReader } from "./secret-reader.ts";
import type { SecretRead, SecretState } from "./secret-state.ts";

/** The result of a poll. */
export interface SecretChanges {
  /** References in the configuration file whose values changed. */
  file: readonly string[];
  /** References of variables such as HEADRACE_SECRET_FILE whose values changed. */
  variables: readonly string[];
  /** Secrets whose values became old, or current again. */
  turned: readonly SecretState[];
}

const nothing: SecretChanges = { file: [], variables: [], turned: [] };

export type SecretUser = "file" | "variables";

/** Holds the values of all referenced secrets. */
export class SecretValues {
  readonly #inputs: { env: Env; clock: Clock };
  readonly #used: Record<SecretUser, readonly string[]> = { file: [], variables: [] };
  #reader: SecretReader | undefined;

  constructor(inputs: { env: Env; clock: Clock }) {
    this.#inputs = inputs;
  }

  /** Reads each secret that was not read before. */
  async resolve(names: readonly string[]): Promise<void> {
    const { SecretReader } = await import("./secret-reader.ts");
    this.#reader ??= new SecretReader(this.#inputs);
    await this.#reader.resolve(names);
  }

  /** Returns the value in use, or why there is none. Undefined if the secret was never read. */
  get(name: string): SecretRead | undefined {
    return this.#reader?.get(name);
  }

  /** Declares the secrets that a part of the configuration uses. Others are forgotten. */
  use(user: SecretUser, names: readonly string[]): void {
    this.#used[user] = names;
    this.#reader?.retain(new Set(Object.values(this.#used).flat()));
  }

  /** Reads changed and expired secrets again; with `now`, all. A secret that cannot be read keeps its value. */
  async poll(now = false): Promise<SecretChanges> {
    if (!this.#reader) return nothing;
    const { changed, turned } = await this.#reader.poll(now);
    const of = (user: SecretUser) => this.#used[user].filter((name) => changed.has(name));
    return { file: of("file"), variables: of("variables"), turned: turned.filter(this.#isUsed) };
  }

  get states(): readonly SecretState[] {
    return this.#reader?.states.filter(this.#isUsed) ?? [];
  }

  /**
   * Reports whether the configuration uses the secret. A configuration file that was refused may have referred to other
   * secrets.
   */
  readonly #isUsed = ({ name }: SecretState) => Object.values(this.#used).some((names) => names.includes(name));

  /** The values that must not appear in a log: current and previous secrets, and the credentials for Vault. */
  get values(): readonly string[] {
    return this.#reader?.values ?? [];
  }
}

/** Returns the reference of a file, by its absolute path. A path may begin with `~/` or `$CREDENTIALS_DIRECTORY/`. */
export function fileReference(path: string, from: string, env: Env): string {
  const credentials = /^\$CREDENTIALS_DIRECTORY\/(.+)$/.exec(path)?.[1];
  const directory = env["CREDENTIALS_DIRECTORY"] ?? "";
  if (credentials !== undefined && isAbsolute(directory)) return `file:${join(directory, credentials)}`;
  return `file:${resolvePath(path, from, env)}`;
}
