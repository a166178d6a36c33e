// The app that asks: named once, and known.
import type { AppStore, PublishedApp } from "../../domain/app.ts";
import type { PageFault } from "./check.ts";
import type { Parameters } from "./parameters.ts";

const longestId = 100;

export async function knownClient(
  parameters: Parameters,
  apps: Pick<AppStore, "findApp">,
): Promise<PublishedApp | PageFault> {
  if (parameters.isRepeated("client_id")) return { message: "client_id: send it once.", reason: "client_id_repeated" };
  const id = parameters.get("client_id");
  if (id === undefined) return { message: "client_id: send the id of the app, app_….", reason: "client_id_missing" };
  const app = id.length > longestId ? undefined : await apps.findApp(id);
  return app ?? { message: "client_id: there is no such app, or it was deleted.", reason: "client_unknown" };
}
