// The primary process's key store, as a worker's credential cache uses it.
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

  /** Never called: requests with a token or a session are handed over to the primary process. */
  findChainById(): Promise<KeyChain | undefined> {
    return Promise.resolve(undefined);
  }

  credentialRevision(): Promise<number> {
    return Promise.resolve(this.#link.ask<number>("revision"));
  }

  /** Expired credentials are handed over, and ended by the primary process. */
  endDue(): Promise<void> {
    return Promise.resolve();
  }

  touchKeys(lastUsed: ReadonlyMap<string, number>): Promise<void> {
    return Promise.resolve(this.#link.ask<void>("touch", [...lastUsed]));
  }
}
