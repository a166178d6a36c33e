// Routes of what is kept for clients, such as files and batches: whoever may ask models may read it, and change it.
import type { ErrorForm, RouteDoc, ScopedRoute } from "../exchange/route.ts";

export interface KeptKind {
  /** What all of their paths begin with. */
  base: string;
  tag: RouteDoc["tag"];
  /** What `:id` in a path is the id of. */
  noun: string;
  errorForm?: ErrorForm;
}

type KeptRoute = (
  method: ScopedRoute["method"],
  path: string,
  doc: Omit<RouteDoc, "tag" | "parameters">,
  handle: ScopedRoute["handle"],
) => ScopedRoute;

/** Gives what makes a route of this kind; `path` follows `base`. */
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
