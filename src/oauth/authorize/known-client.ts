// The app that asks: named once, and known.
import type { AppStore, PublishedApp } from "../../domain/people/app.ts";
import type { PageFault } from "./check.ts";
import type { Parameters } from "./parameters.ts";

const longestId = 100;

export async function knownClient(
  parameters: Parameters,
  apps: Pick<AppStore, "findApp">,
): Promise<PublishedApp | PageFault> {
  if (parameters.isRepeated("client_id")) return { message: "client_id was sent twice.", reason: "client_id_repeated" };
  const id = parameters.get("client_id");
  if (id === undefined) return { message: "client_id is missing.", reason: "client_id_missing" };
  const app = id.length > longestId ? undefined : await apps.findApp(id);
  return (
    app ?? { message: "client_id is not that of an app here; it may have been deleted.", reason: "client_unknown" }
  );
}
