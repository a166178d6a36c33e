// The operators' endpoints for declared state: list, plan, apply, put and delete documents.

import { z } from "zod";
import { invalidRequest } from "../../../../base/errors.ts";
import { declaredKinds } from "../../../../domain/declared.ts";
import {
  appliedShape,
  applyRequest,
  documentQuery,
  documentShape,
  managerQuery,
  putDocumentRequest,
  putDocumentShape,
} from "../../../../wire/operations/declared.ts";
import type { ScopedRoute } from "../../../exchange/route.ts";
import type { EndpointDeps } from "../../endpoint.ts";
import { wholeListOf } from "../../list.ts";
import { adminEndpoints } from "../admin-endpoint.ts";
import type { DeclaredDeps } from "./declared-state.ts";

export type DeclaredRouteDeps = DeclaredDeps & EndpointDeps;

const documentParameter = [
  { name: "document", in: "path", description: "Kind and external name, such as `account/web-shop`." },
] as const;
const documentList = wholeListOf(documentShape, "DeclaredDocumentList");
const deletedDocument = z
  .object({ object: z.literal("document"), kind: z.enum(declaredKinds), name: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedDocument" });
const ownership = "An object of another manager is refused. An object without a manager gets the one in the request.";

const endpoint = adminEndpoints<DeclaredRouteDeps>();

export function declaredRoutes(deps: DeclaredRouteDeps): ScopedRoute[] {
  return [list(deps), apply(deps), retrieve(deps), put(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/admin/documents", {
  operationId: "listDocuments",
  summary: "List the objects of the installation as documents, for files",
  description:
    "Lists objects that were made by this API, not those of headrace.yaml, and of webhooks those of the operators. API keys are listed if documents made them. Secrets are not shown.",
  query: documentQuery,
  response: { description: "The documents, in the order of their creation by `headrace apply`.", json: documentList },
  async answer({ deps, principal, origin, query }) {
    const { documentsOf } = await import("./declared-state.ts");
    const data = (await documentsOf(deps, { principal, origin })).filter(
      ({ kind, managed_by }) =>
        (query.kind ?? kind) === kind && (query.managed_by === undefined || query.managed_by === managed_by),
    );
    return { object: "list" as const, data };
  },
});

const apply = endpoint("POST", "/v1/admin/apply", {
  operationId: "applyDocuments",
  summary: "Make objects what documents say, or plan it",
  description: `Documents are applied in the order of their kinds. The first failure ends the request; changes before it stay, and the same request goes on from there. ${ownership} A pruned account is suspended, as accounts are not deleted.`,
  requestBody: applyRequest,
  example: {
    managed_by: "production",
    documents: [{ kind: "account", name: "web-shop", spec: { name: "Web shop", tier: "pro" } }],
    plan: true,
  },
  response: { description: "The changes that were planned or made.", json: appliedShape },
  showsSecret: true,
  async answer({ deps, principal, origin, body }) {
    const { applyDocuments } = await import("./declared-state.ts");
    return applyDocuments(deps, { principal, origin }, body);
  },
});

const retrieve = endpoint("GET", "/v1/admin/documents/*", {
  operationId: "retrieveDocument",
  summary: "Retrieve one object as a document",
  parameters: documentParameter,
  response: { description: "The document.", json: documentShape },
  async answer({ deps, principal, origin, id }) {
    const { requireDocument } = await import("./declared-state.ts");
    return requireDocument(deps, { principal, origin }, namedBy(id));
  },
});

const put = endpoint("PUT", "/v1/admin/documents/*", {
  operationId: "putDocument",
  summary: "Create an object by its external name, or replace its settings",
  description: `The same request again changes nothing. ${ownership}`,
  parameters: documentParameter,
  requestBody: putDocumentRequest,
  example: { managed_by: "terraform", spec: { name: "Web shop", tier: "pro" } },
  response: { description: "The document, with the secret of a new API key or webhook.", json: putDocumentShape },
  showsSecret: true,
  async answer({ deps, principal, origin, id, body: { managed_by: managedBy, spec } }) {
    const { applyDocument } = await import("./declared-state.ts");
    return applyDocument(deps, { principal, origin }, { ...namedBy(id), spec }, managedBy);
  },
});

const remove = endpoint("DELETE", "/v1/admin/documents/*", {
  operationId: "deleteDocument",
  summary: "Delete an object by its external name",
  description: "An account is suspended instead. An object with a manager is deleted only by that manager.",
  parameters: documentParameter,
  query: managerQuery,
  response: { description: "The object is deleted.", json: deletedDocument },
  async answer({ deps, principal, origin, id, query }) {
    const { removeDocument } = await import("./declared-state.ts");
    const { kind, name } = namedBy(id);
    await removeDocument(deps, { principal, origin }, { kind, name }, query.managed_by);
    return { object: "document" as const, kind, name, deleted: true as const };
  },
});

function namedBy(path: string) {
  const [, word, name = ""] = /^([a-z_]+)\/(.+)$/s.exec(path) ?? [];
  const kind = declaredKinds.find((one) => one === word);
  if (kind && name.length <= 256) return { kind, name };
  throw invalidRequest(
    `The path must be a kind and a name, such as account/web-shop. Kinds: ${declaredKinds.join(", ")}.`,
  );
}
