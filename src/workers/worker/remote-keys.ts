// The key store of the primary process, as a worker's cache of credentials asks it.
import type { KeyChain, KeyStore } from "../../domain/principal.ts";
import type { PrimaryLink } from "./primary-link.ts";

type Asked = "findChainByDigest" | "findChainById" | "credentialRevision" | "endDue" | "touchKeys";

export class RemoteKeys implements Pick<KeyStore, Asked> {
  readonly #link: PrimaryLink;

  constructor(link: PrimaryLink) {
    this.#link = link;
  }

  async findChainByDigest(digest: string, ...older: string[]): Promise<KeyChain | undefined> {
    return (await this.#link.ask<KeyChain | null>("chain", [digest, ...older])) ?? undefined;
  }

  /** Who comes with a token or a session is handed over to the primary process. */
  findChainById(): Promise<KeyChain | undefined> {
    return Promise.resolve(undefined);
  }

  credentialRevision(): Promise<number> {
    return Promise.resolve(this.#link.ask<number>("revision"));
  }

  /** Whose time has come is handed over, and ended there. */
  endDue(): Promise<void> {
    return Promise.resolve();
  }

  touchKeys(lastUsed: ReadonlyMap<string, number>): Promise<void> {
    return Promise.resolve(this.#link.ask<void>("touch", [...lastUsed]));
  }
}
