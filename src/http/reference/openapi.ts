// Generates the OpenAPI 3.1 document from the routes that are served.
import { z } from "zod";
import { type ErrorCode, engineErrorCodes, errorCodes } from "../../base/errors.ts";
import { scopeMeanings } from "../../domain/scope.ts";
import { anthropicStatus, anthropicTypes } from "../../wire/anthropic-errors.ts";
import { errorTable } from "../../wire/errors.ts";
import { spentQuota } from "../../wire/quotas.ts";
import { type ApiRoute, type ErrorForm, isDescribed, type Route, type RouteDoc, restName } from "../exchange/route.ts";

type Json = Record<string, unknown>;

export interface OpenApiOperation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters?: Json[];
  requestBody?: Json;
  responses: Record<string, Json>;
}

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: Components & { securitySchemes: Record<string, Json> };
}

/** Named components of the document, which `$ref` refers to. */
interface Components {
  schemas: Record<string, Json>;
  responses: Record<string, Json>;
}

const { $schema: _, ...spentQuotaSchema } = z.toJSONSchema(spentQuota, { io: "input" });

const errorSchema = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type", "code"],
      additionalProperties: false,
      properties: {
        message: { type: "string", description: "Text for people." },
        type: { type: "string", enum: [...new Set(Object.values(errorTable).map((shape) => shape.type))] },
        param: {
          type: "string",
          description: "The field that is wrong, by its path in the request. Left out if no single field is wrong.",
        },
        code: { type: "string", enum: [...errorCodes, ...engineErrorCodes] },
      },
    },
    quota: spentQuotaSchema,
  },
};

/** The format of errors in the Anthropic API reference, "Errors". */
const anthropicErrorSchema = {
  type: "object",
  required: ["type", "error", "request_id"],
  properties: {
    type: { type: "string", const: "error" },
    error: {
      type: "object",
      required: ["type", "message"],
      additionalProperties: false,
      properties: {
        type: { type: "string", enum: [...new Set([...Object.values(anthropicTypes), "api_error"])] },
        message: { type: "string", description: "Text for people." },
      },
    },
    quota: spentQuotaSchema,
    request_id: { type: "string" },
  },
};

function ofName(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function ownStatus(code: ErrorCode): number {
  return errorTable[code].status;
}

interface ErrorNames {
  schema: Json;
  /** Prefix for the names of error responses in the components. */
  prefix: string;
  statusOf(code: ErrorCode): number;
}

const errorForms: Readonly<Record<ErrorForm, ErrorNames>> = {
  openai: { schema: ofName("Error"), prefix: "", statusOf: ownStatus },
  anthropic: { schema: ofName("AnthropicError"), prefix: "Anthropic", statusOf: anthropicStatus },
  asked: { schema: { anyOf: [ofName("Error"), ofName("AnthropicError")] }, prefix: "EitherForm", statusOf: ownStatus },
};

export function openApiDocument(all: readonly Route[], version: string): OpenApiDocument {
  const routes = all.filter(isDescribed);
  const components: Components = {
    schemas: { Error: errorSchema, AnthropicError: anthropicErrorSchema },
    responses: {},
  };
  const paths: OpenApiDocument["paths"] = {};
  for (const route of routes) {
    const path = documentedPath(route);
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route, components);
  }
  // The schema of a form cannot express a binary file, so the file is described here.
  components.schemas["FormFile"] = { type: "string", format: "binary", description: "A file, sent with a filename." };
  return {
    openapi: "3.1.0",
    info: {
      title: "Headrace",
      version,
      description:
        "A model inference gateway. Client libraries for the OpenAI API work with this base address and an API key. Within `/v1` only additive changes are made.",
    },
    paths,
    components: {
      ...components,
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "An API key or an access token: `Authorization: Bearer sk_…`",
        },
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "An API key: `X-API-Key: sk_…`" },
        azureApiKey: {
          type: "apiKey",
          in: "header",
          name: "api-key",
          description: "The same, as clients made for Azure send it.",
        },
      },
    },
  };
}

/** Resolves a `$ref` within the document. Returns a value without `$ref` unchanged. */
export function resolved(value: Json, document: OpenApiDocument): Json {
  const reference = value["$ref"];
  if (typeof reference !== "string") return value;
  const [, , kind, name = ""] = reference.split("/");
  return document.components[kind as keyof Components][name] ?? value;
}

/** Converts a path pattern: `/v1/models/*` becomes `/v1/models/{model}`. */
function documentedPath(route: ApiRoute): string {
  return route.path.replace(/\*$/, `{${restName(route)}}`).replace(/:(\w+)/g, "{$1}");
}

function operation(route: ApiRoute, components: Components): OpenApiOperation {
  const { doc, access } = route;
  const scoped = access !== "public";
  const description = [doc.description, accessText(access)].filter(Boolean).join("\n\n");
  const codes: ErrorCode[] = [
    // Every authenticated route has these errors: from authentication, from the store, and from an invalid environment
    // header.
    ...(scoped ? (["invalid_request", "invalid_api_key", "service_unavailable"] as const) : []),
    ...(scoped && access !== "person" ? (["insufficient_scope"] as const) : []),
    ...(access === "person" ? (["permission_denied"] as const) : []),
    ...(doc.errors ?? []),
  ];
  // Every route has rate limits by address.
  codes.push("rate_limit_exceeded", "internal_error");
  return {
    operationId: doc.operationId,
    summary: doc.summary,
    ...(description ? { description } : {}),
    tags: [doc.tag],
    security: securityOf(access),
    ...(doc.parameters || doc.query || doc.repeatable
      ? { parameters: [...pathParameters(doc), ...queryParameters(doc), ...(doc.repeatable ? [idempotencyKey] : [])] }
      : {}),
    ...(doc.requestBody
      ? {
          requestBody: {
            required: !doc.bodyIsOptional,
            content: Object.fromEntries(
              [doc.requestType ?? "application/json", ...(doc.orJson ? ["application/json"] : [])].map((type) => [
                type,
                {
                  schema: schemaOf(doc.requestBody as z.ZodType, components),
                  ...(doc.example ? { example: doc.example } : {}),
                },
              ]),
            ),
          },
        }
      : {}),
    responses: {
      [doc.response.status ?? 200]: answer(doc.response, components),
      ...errorResponses(codes, errorForms[route.errorForm ?? "openai"], components),
      // A route whose errors have another format declares them itself.
      ...Object.fromEntries(
        Object.entries(doc.otherResponses ?? {}).map(([status, { name, ...response }]) => {
          const described = answer(response, components);
          return [status, name === undefined ? described : shared(name, described, components)];
        }),
      ),
    },
  };
}

/**
 * Returns the security schemes for a route's access. The session cookie is not described, because only the gateway's
 * own pages can use it.
 */
function securityOf(access: ApiRoute["access"]): Record<string, string[]>[] {
  if (access === "public") return [];
  return access === "person" ? [{ bearer: [] }] : [{ bearer: [] }, { apiKey: [] }, { azureApiKey: [] }];
}

function accessText(access: ApiRoute["access"]): string {
  if (access === "public") return "";
  if (access === "person") return "For people: with a session of this server's pages, or a token of `headrace login`.";
  return `Needs the scope \`${access}\`: ${scopeMeanings[access]}`;
}

function pathParameters({ parameters = [] }: RouteDoc): Json[] {
  return parameters.map((parameter) => ({ ...parameter, required: true, schema: { type: "string" } }));
}

const idempotencyKey: Json = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "1 to 255 printable ASCII characters without spaces, such as a UUID. A repeated request with the same key gets the answer to the first one, for 24 hours. If the first one failed with a 5xx status, or its answer was longer than 16 KiB, the repetition is refused (400): read whether it had its effect before you use a new key.",
  schema: { type: "string" },
};

function queryParameters({ query }: RouteDoc): Json[] {
  if (!query) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(query, { io: "input", unrepresentable: "any" }) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    ...(typeof description === "string" ? { description: `Must be ${description}.` } : {}),
    ...(required.includes(name) ? { required: true } : {}),
    schema,
  }));
}

function answer(response: RouteDoc["response"], components: Components): Json {
  const content: Json = {};
  if (response.json) content["application/json"] = { schema: schemaOf(response.json, components) };
  if (response.stream) content["text/event-stream"] = { schema: schemaOf(response.stream, components) };
  for (const type of response.contentTypes ?? []) content[type] = {};
  return {
    description: response.description,
    headers: { "x-request-id": { description: "Finds the request in logs and usage.", schema: { type: "string" } } },
    content,
  };
}

/**
 * Describes errors by status. If several codes share a status, their names are joined:
 * `InsufficientScopeOrPermissionDenied`.
 */
function errorResponses(
  codes: readonly ErrorCode[],
  { schema, prefix, statusOf }: ErrorNames,
  components: Components,
): Record<string, Json> {
  const named = errorCodes.filter((code) => codes.includes(code));
  const byStatus = [...Map.groupBy(named, statusOf)];
  return Object.fromEntries(
    byStatus.map(([status, together]) => {
      const described = {
        description: together.map((code) => `\`${code}\`: ${errorTable[code].when}`).join("\n\n"),
        content: { "application/json": { schema } },
      };
      return [status, shared(prefix + together.map(pascalCase).join("Or"), described, components)];
    }),
  );
}

function pascalCase(code: ErrorCode): string {
  return code.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Adds a response to the components, and returns a `$ref` to it. */
function shared(name: string, response: Json, { responses }: Components): Json {
  responses[name] = response;
  return { $ref: `#/components/responses/${name}` };
}

/**
 * Adds a named schema, and the named schemas within it, to the components, and returns a `$ref`. An unnamed schema is
 * returned itself.
 */
function schemaOf(schema: z.ZodType, { schemas }: Components): Json {
  const {
    $schema: _,
    $defs,
    ...root
  } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Json & { $defs?: Record<string, Json> };
  const relocate = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(relocate);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [
        name,
        name === "$ref" && typeof inner === "string"
          ? inner.replace("#/$defs/", "#/components/schemas/")
          : relocate(inner),
      ]),
    );
  };
  for (const [name, definition] of Object.entries($defs ?? {})) {
    const { id: _id, ...rest } = definition;
    schemas[name] = relocate(rest) as Json;
  }
  const { id, ...rest } = relocate(root) as Json & { id?: string };
  if (typeof id !== "string" || "$ref" in rest) return rest;
  schemas[id] = rest;
  return { $ref: `#/components/schemas/${id}` };
}
