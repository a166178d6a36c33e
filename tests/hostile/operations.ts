// The operations of a running server, from the OpenAPI document that it serves; and its pages, from the route table.
import { createRoutes } from "../../src/http/routes.ts";
import { type ApiDocument, describedAnswer, resolverOf } from "../contract/json-schema.ts";
import type { TestServer } from "../support/headrace.ts";

export interface Schema {
  readonly [keyword: string]: unknown;
  $ref?: string;
  type?: string | readonly string[];
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
}

interface Media {
  schema?: Schema;
}

export interface Operation {
  method: string;
  path: string;
  /** Needs no credential in a header. */
  isOpen: boolean;
  /** For people, not for keys. */
  isForPeople: boolean;
  /** The parameters of the query and what they may be. */
  query: readonly { name: string; schema: Schema }[];
  /** `example` is one that works as it stands, but for what it names. */
  body: { schema: Schema; isForm: boolean; example?: Readonly<Record<string, unknown>> } | undefined;
  /** By status, what the document says of the body, by media type. */
  responses: Readonly<Record<string, Readonly<Record<string, Media>>>>;
}

interface Documented {
  parameters?: readonly { name: string; in: string; schema: Schema }[];
  security: readonly unknown[];
  requestBody?: { content: Readonly<Record<string, { schema: Schema; example?: Readonly<Record<string, unknown>> }>> };
}

export const formType = "application/x-www-form-urlencoded";

export interface Described {
  operations: readonly Operation[];
  resolve(reference: string): Schema;
}

export async function describedBy(server: Pick<TestServer, "url">): Promise<Described> {
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument<Documented>;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, documented]) => {
      const answers = Object.keys(documented.responses).map((status) => [
        status,
        describedAnswer(document, [method, path, Number(status)]) ?? {},
      ]);
      return { ...operationOf(method, path, documented), responses: Object.fromEntries(answers) };
    }),
  );
  return { operations, resolve: resolverOf(document) };
}

function operationOf(method: string, path: string, documented: Documented): Omit<Operation, "responses"> {
  const { parameters = [], requestBody, security } = documented;
  const isForm = requestBody?.content[formType] !== undefined;
  const media = requestBody?.content[isForm ? formType : "application/json"];
  return {
    ...{ method: method.toUpperCase(), path, isOpen: security.length === 0 },
    isForPeople: security.length === 1,
    query: parameters.filter((parameter) => parameter.in === "query"),
    body: media && { ...media, isForm },
  };
}

/** Pages of people: what takes a form takes any of these fields. */
export function pageOperations(): Operation[] {
  const fields = "csrf ticket email name password current_password next decision account_id user_code id scope";
  const properties = Object.fromEntries(fields.split(" ").map((name) => [name, { type: "string" }]));
  const query = "next user_code code state client_id redirect_uri response_type scope code_challenge prompt error";
  return createRoutes(new Proxy({}, { get: () => undefined }) as Parameters<typeof createRoutes>[0])
    .filter((route) => route.access === "page")
    .map(({ method, path }) => ({
      ...{ method, path: path.replace("*", "{rest}").replace(/:(\w+)/g, "{$1}") },
      isOpen: false,
      isForPeople: true,
      query: method === "GET" ? query.split(" ").map((name) => ({ name, schema: { type: "string" } })) : [],
      body: method === "POST" ? { schema: { type: "object", properties }, isForm: true } : undefined,
      responses: {},
    }));
}
