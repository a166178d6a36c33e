// Requests for fast-check: an operation with what it allows or what it does not, and whoever may be asking.
import fc from "fast-check";
import { type CredentialKind, credentialKinds, goodKinds } from "./any-credential.ts";
import { kindAt } from "./existing-things.ts";
import {
  anyExisting,
  type Change,
  changed,
  changes,
  existing,
  jsonText,
  oddText,
  plainText,
  SchemaValues,
} from "./hostile-values.ts";
import { formType, type Operation, type Schema } from "./operations.ts";

export interface AnyRequest {
  operation: Operation;
  credential: CredentialKind;
  /** For each parameter of the path. */
  segments: readonly string[];
  query: readonly (readonly [name: string, value: unknown])[];
  body: unknown;
  changes: readonly Change[];
  headers: Readonly<Record<string, string>>;
}

const rarely = <Value>(usual: fc.Arbitrary<Value>, odd: fc.Arbitrary<Value>, weight = 12) =>
  fc.oneof({ arbitrary: usual, weight }, { arbitrary: odd, weight: 1 });

const credential: fc.Arbitrary<CredentialKind> = fc.oneof(
  { arbitrary: fc.constant<CredentialKind>("operator key"), weight: 4 },
  { arbitrary: fc.constant<CredentialKind>("operator's session"), weight: 4 },
  { arbitrary: fc.constantFrom(...goodKinds), weight: 6 },
  { arbitrary: fc.constantFrom(...credentialKinds), weight: 3 },
);

const oddHeaders: fc.Arbitrary<Record<string, string>> = fc.constantFrom<Record<string, string>[]>(
  { "content-type": "text/plain" },
  { "content-type": "application/json; charset=utf-16" },
  { "content-type": "x".repeat(2_000) },
  { "content-encoding": "gzip" },
  { accept: "text/csv" },
  { accept: "text/html, */*;q=0.1" },
  { origin: "https://evil.example" },
  { "x-forwarded-for": "203.0.113.9, x" },
  { forwarded: "for=;;" },
  { via: "1.1 x" },
  { cookie: "headrace_session=; headrace_session=x; =; ;" },
  { "x-csrf-token": "x" },
  { "headrace-environment": "prod" },
  { "headrace-account": "acct_none" },
  { traceparent: `00-${"0".repeat(32)}-${"f".repeat(16)}-zz` },
  { "idempotency-key": "x".repeat(3_000) },
  { "x-request-id": "req_mine" },
  { "sec-fetch-site": "cross-site" },
  { "accept-language": "\u00ff" },
);

export function anyRequest(
  operations: readonly Operation[],
  resolve: (reference: string) => Schema,
): fc.Arbitrary<AnyRequest> {
  const values = new SchemaValues(resolve);
  const each = operations.map((operation) => requestTo(operation, values));
  return fc.nat({ max: each.length - 1 }).chain((index) => each[index] as fc.Arbitrary<AnyRequest>);
}

function requestTo(operation: Operation, values: SchemaValues): fc.Arbitrary<AnyRequest> {
  const { path, query, body } = operation;
  const nobody = fc.constantFrom<CredentialKind[]>("nothing", "visitor of our pages");
  const segments = [...path.matchAll(/\{\w+\}/g)].map(({ index }) =>
    rarely(fc.constant(existing(kindAt(path.slice(0, index)))), fc.oneof(anyExisting, oddText), 5),
  );
  const one = ({ name, schema }: Operation["query"][number]) =>
    rarely(values.of(schema, name), oddText as fc.Arbitrary<unknown>, 8).map((value) => [name, value] as const);
  const some = fc
    .subarray([...query], { maxLength: Math.min(query.length, 3) })
    .chain((chosen) => fc.tuple(...chosen.map(one)));
  const odd: fc.Arbitrary<(readonly [string, unknown])[]> = fc.array(
    fc.tuple(rarely(fc.constant("metadata[topic]"), oddText, 1), oddText),
    { maxLength: 2 },
  );
  return fc.record({
    operation: fc.constant(operation),
    credential: operation.isOpen ? rarely(nobody, credential, 3) : credential,
    segments: fc.tuple(...segments),
    query: fc.tuple(some, rarely(fc.constant<(readonly [string, unknown])[]>([]), odd)).map((parts) => parts.flat()),
    body: body ? bodyFor(body, values) : fc.constant(undefined),
    changes: body ? changes : fc.constant([]),
    headers: rarely(fc.constant({}), oddHeaders, 8),
  });
}

/** For each parameter and each member of the body one request for each odd value, all else being right. */
export function oneWrongEach(
  operation: Operation,
  resolve: (reference: string) => Schema,
  odd: { texts: readonly string[]; values: readonly unknown[] },
): AnyRequest[] {
  const { path, query, body } = operation;
  const values = new SchemaValues(resolve);
  const [example] = body ? fc.sample(bodyFor(body, values), { numRuns: 1, seed: 7 }) : [undefined];
  const works: AnyRequest = {
    ...{ operation, query: [], changes: [], headers: {}, body: body?.example ? exampleOf(body.example) : example },
    credential: operation.isOpen ? "nothing" : operation.isForPeople ? "operator's session" : "operator key",
    segments: [...path.matchAll(/\{\w+\}/g)].map(({ index }) => existing(kindAt(path.slice(0, index)))),
  };
  const members = Object.entries((body && membersOf(body.schema, resolve)) ?? {}).map(([name]) => name);
  const right = works.body as Record<string, unknown>;
  return [
    works,
    ...query.flatMap(({ name }) => odd.texts.map((text) => ({ ...works, query: [[name, text] as const] }))),
    ...works.segments.flatMap((_, at) =>
      odd.texts.map((text) => ({ ...works, segments: works.segments.with(at, text || "x") })),
    ),
    ...members.flatMap((name) => odd.values.map((value) => ({ ...works, body: { ...right, [name]: value } }))),
  ];
}

function membersOf(schema: Schema, resolve: (reference: string) => Schema): Readonly<Record<string, Schema>> {
  return (schema.$ref ? resolve(schema.$ref) : schema).properties ?? {};
}

function bodyFor(
  { schema, example }: Exclude<Operation["body"], undefined>,
  values: SchemaValues,
): fc.Arbitrary<unknown> {
  const made = values.of(schema);
  if (!example) return made;
  const works = exampleOf(example);
  return fc.oneof({ arbitrary: fc.constant<unknown>(works), weight: 1 }, { arbitrary: made, weight: 2 });
}

function exampleOf(example: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(example).map(([name, value]) => [name, named(name, value)]));
}

/** Examples name a model, a key and a token that are not here. */
function named(name: string, value: unknown): unknown {
  if (name === "model") return "our-model";
  if (name === "api_key") return existing("secret_key");
  return name === "token" ? existing("join") : value;
}

export interface SentForm {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** The form in which it is sent: `idOf` gives what exists of each kind. */
export function sentForm(request: AnyRequest, idOf: (kind: string) => string): SentForm {
  const { operation, segments, query, headers } = request;
  const encoded = (value: unknown) => encodeURIComponent(plainText(value, idOf));
  let next = 0;
  // From no segment, or one of dots, the client would make another path.
  const segment = (text: string) => (/^\.{0,2}$/.test(text) ? `x${text}` : text);
  const path = operation.path.replace(/\{\w+\}/g, () => segment(encoded(segments[next++])));
  const pairs = query.map((pair) => pair.map(encoded).join("="));
  return {
    method: operation.method,
    target: pairs.length > 0 ? `${path}?${pairs.join("&")}` : path,
    headers: {
      ...(operation.body ? { "content-type": operation.body.isForm ? formType : "application/json" } : {}),
      ...headers,
    },
    body: bodyText(request, encoded, idOf),
  };
}

function bodyText(
  { operation, body, changes: all }: AnyRequest,
  encoded: (value: unknown) => string,
  idOf: (kind: string) => string,
): string | undefined {
  if (!operation.body) return undefined;
  const value = changed(body, all);
  if (!operation.body.isForm) return jsonText(value, idOf);
  const members = typeof value === "object" && value !== null ? Object.entries(value) : [["", value] as const];
  return members
    .flatMap(([name, member]) => (Array.isArray(member) ? member : [member]).map((item) => [name, item] as const))
    .map((pair) => pair.map(encoded).join("="))
    .join("&");
}
