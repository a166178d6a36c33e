// Creates a set-up link directly in a server's database, even while the server runs.
import { type MadeLink, OneTimeLinks } from "../accounts/links.ts";
import { StartError } from "../base/errors.ts";
import { readCredentials } from "../storage/files/credentials-file.ts";
import { SqlPersonStore } from "../storage/tables/people/person-store.ts";
import { type DatabaseLocation, withDatabaseOf } from "./data-directory.ts";

export interface SetupLinkOptions extends DatabaseLocation {
  /** Address of the server, with or without `/v1`; undefined for the last address, from credentials.json. */
  baseUrl: string | undefined;
  nowSeconds: number;
}

/**
 * Creates a link that makes the person who opens it an operator. Earlier links become invalid. Throws a StartError if
 * that is impossible.
 */
export async function makeSetupLink({ baseUrl, nowSeconds, ...place }: SetupLinkOptions): Promise<MadeLink> {
  return withDatabaseOf(place, (db) => {
    const address = baseUrl ?? readCredentials(place.dataDir)?.base_url;
    if (address === undefined) {
      throw new StartError(
        "Where browsers reach the server is not known: there is no credentials.json in the data directory. Name it with HEADRACE_PUBLIC_URL or --base-url https://ai.example.com/v1",
      );
    }
    const links = new OneTimeLinks({
      people: new SqlPersonStore(db),
      clock: { nowSeconds: () => nowSeconds, monotonicMs: () => 0 },
      publicOrigin: () => address.replace(/\/v1$/, ""),
      mail: undefined,
      // Links are only created here; a server handles their use.
      sessions: { start: notHere },
      firstAccountId: notHere,
      limits: { admit: notHere },
      log: { info() {}, warn() {}, error() {} },
    });
    return links.createSetupLink({ type: "operator" });
  });
}

function notHere(): Promise<never> {
  return Promise.reject(new Error("Nothing but the link is made here."));
}
