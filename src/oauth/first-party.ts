// Finds clients: registered apps, and the command line tool, which no account registered.
import type { Environment } from "../domain/api-key.ts";
import {
  type AppStore,
  commandLineAppId,
  commandLineName,
  commandLinePublisher,
  type PublishedApp,
} from "../domain/people/app.ts";
import { accountScopes } from "../domain/scope.ts";
import { appIdOf } from "./client/document-url.ts";

/** Returns the command line tool's app: public, and only for the device flow, because it has no redirect address. */
export function commandLineApp(environment: Environment): PublishedApp {
  return {
    id: commandLineAppId,
    accountId: "",
    personId: null,
    name: commandLineName,
    publisher: commandLinePublisher,
    homepageUrl: null,
    type: "public",
    redirectUris: [],
    scopes: accountScopes,
    tools: null,
    environment,
    requirePkce: true,
    secrets: [],
    suspendedBy: null,
    createdBy: null,
    createdAt: 0,
  };
}

/** Finds a client by its id. `environment` is that of the command line tool. */
export function findClient(
  id: string,
  apps: Pick<AppStore, "findApp">,
  environment: Environment,
): Promise<PublishedApp | undefined> {
  return id === commandLineAppId ? Promise.resolve(commandLineApp(environment)) : apps.findApp(appIdOf(id));
}
