// Declares routes for stored objects, such as files and batches. Callers need the scope for model requests.
import type { ErrorForm, RouteDoc, ScopedRoute } from "../exchange/route.ts";

export interface KeptKind {
  /** Prefix of all paths. */
  base: string;
  tag: RouteDoc["tag"];
  /** The name of the objects that `:id` identifies, such as "file". */
  noun: string;
  errorForm?: ErrorForm;
}

type KeptRoute = (
  method: ScopedRoute["method"],
  path: string,
  doc: Omit<RouteDoc, "tag" | "parameters">,
  handle: ScopedRoute["handle"],
) => ScopedRoute;

/** Returns a function that declares a route. `path` is appended to `base`. */
export function keptRoutes({ base, tag, noun, errorForm }: KeptKind): KeptRoute {
  const parameters = [{ name: "id", in: "path" as const, description: `Id of the ${noun}.` }];
  return (method, rest, doc, handle) => {
    const path = base + rest;
    return {
      ...{ method, path, access: method === "POST" ? "chat:write" : "chat:read" },
      doc: { ...doc, tag, ...(path.includes(":id") ? { parameters } : {}) },
      ...(errorForm && { errorForm }),
      handle,
    };
  };
}
