// Writes the secret of each new API key and webhook to a file of its own, for `headrace apply`.
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { renderLocation } from "../../config/problems.ts";
import { replaceFile } from "../../storage/files/durable-file.ts";
import { CliError } from "../terminal/terminal.ts";
import type { ReadDocument } from "./documents.ts";

/** Reports whether the server makes a secret for a new object. PagerDuty's secret is the routing key in the document. */
function hasSecret({ document: { kind, spec } }: ReadDocument): boolean {
  return kind === "key" || (kind === "webhook" && spec["format"] !== "pagerduty");
}

interface Changed {
  kind: string;
  name: string;
  action: string;
  secret?: string | undefined;
}

export class SecretFiles {
  readonly #documents: readonly ReadDocument[];
  readonly #directory: string | undefined;

  /** `directory` takes the secrets of documents that name no file. */
  constructor(documents: readonly ReadDocument[], directory: string | undefined) {
    this.#documents = documents;
    this.#directory = directory;
  }

  /** Returns the objects whose secret file does not exist. */
  lost(): { kind: string; name: string }[] {
    return this.#documents.flatMap((one) => {
      const { kind, name } = one.document;
      const path = hasSecret(one) ? this.#pathOf(one) : undefined;
      return path !== undefined && !existsSync(path) ? [{ kind, name }] : [];
    });
  }

  /**
   * Throws if a new secret has no file, if its file exists already, or if two secrets share a file. Call this before
   * anything is changed.
   */
  requireRoom(changes: readonly Changed[]): void {
    this.#requireOwnFiles();
    for (const change of changes) {
      if (change.action !== "create" && change.action !== "replace") continue;
      const one = this.#documentOf(change);
      if (!hasSecret(one)) continue;
      const path = this.#pathOf(one);
      const at = renderLocation(one.yaml.locate(["name"]));
      if (path === undefined) {
        throw new CliError(
          `${at}its secret is made now and shown once. Name its file with secret_to beside name, or give --secrets-dir.`,
        );
      }
      if (existsSync(path)) {
        throw new CliError(`${at}its secret would go to ${path}, which exists. Move that file away first.`);
      }
    }
  }

  #requireOwnFiles(): void {
    const owners = new Map<string, string>();
    for (const one of this.#documents) {
      const path = hasSecret(one) ? this.#pathOf(one) : undefined;
      if (path === undefined) continue;
      const { kind, name } = one.document;
      const other = owners.get(path);
      if (other !== undefined) {
        throw new CliError(
          `${renderLocation(one.yaml.locate(["name"]))}its secret would go to ${path}, as that of ${other}. Name another file with secret_to beside name.`,
        );
      }
      owners.set(path, `${kind} ${name}`);
    }
  }

  /** Writes the new secrets, each readable by this user only. Returns the paths. */
  async write(changes: readonly Changed[]): Promise<string[]> {
    const made = changes.filter(({ secret }) => secret !== undefined);
    const written = await Promise.allSettled(made.map((change) => this.#writeOne(change)));
    const failed = written.findIndex(({ status }) => status === "rejected");
    const { kind, name } = made[failed] ?? {};
    if (failed < 0) return written.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    throw new CliError(
      `The secret of ${kind} ${name} could not be written (${String((written[failed] as PromiseRejectedResult).reason)}). Run the command again with --replace-lost.`,
    );
  }

  async #writeOne(change: Changed): Promise<string> {
    const path = this.#pathOf(this.#documentOf(change)) ?? "";
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    if (existsSync(path)) throw new Error(`${path} exists`);
    // The write is atomic: on a full disk, a plain write could leave a cut-off file. A secret counts as lost only if
    // its file does not exist.
    replaceFile(path, `${change.secret}\n`);
    return path;
  }

  #documentOf({ kind, name }: Changed): ReadDocument {
    const found = this.#documents.find(({ document }) => document.kind === kind && document.name === name);
    if (found) return found;
    throw new CliError(`The server made a ${kind} ${name} that no document has.`);
  }

  #pathOf({ document: { kind, name }, secretTo }: ReadDocument): string | undefined {
    if (secretTo !== undefined || this.#directory === undefined) return secretTo;
    return join(this.#directory, `${kind}-${name.replace(/[^A-Za-z0-9._-]+/g, "_")}`);
  }
}
