// Finds the app that `client_id` names: a registered app, or one that the document at that URL describes.
import type { AppStore, PublishedApp } from "../../domain/people/app.ts";
import { appIdOf, isDocumentUrl } from "../client/document-url.ts";
import type { PageFault } from "./check.ts";
import type { Parameters } from "./parameters.ts";

export interface ClientSources {
  apps: Pick<AppStore, "findApp">;
  /** Returns the app that the document at this URL describes. Undefined if no documents are fetched. */
  findDocument: ((url: string) => Promise<PublishedApp | PageFault>) | undefined;
}

const maxIdLength = 100;

export async function knownClient(
  parameters: Parameters,
  { apps, findDocument }: ClientSources,
): Promise<PublishedApp | PageFault> {
  if (parameters.isRepeated("client_id")) return { message: "client_id was sent twice.", reason: "client_id_repeated" };
  const id = parameters.get("client_id");
  if (id === undefined) return { message: "client_id is missing.", reason: "client_id_missing" };
  const isDocument = findDocument !== undefined && isDocumentUrl(id);
  const stored = id.length > maxIdLength && !isDocument ? undefined : await apps.findApp(isDocument ? appIdOf(id) : id);
  if (stored && stored.suspendedBy !== null) {
    return { message: "This app is suspended here. Ask the operator of this server.", reason: "app_suspended" };
  }
  if (isDocument) return findDocument(id);
  return (
    stored ?? { message: "client_id is not that of an app here; it may have been deleted.", reason: "client_unknown" }
  );
}
